"""7. Exact integers with BFV: votes that a server adds up without seeing them.

Run with: python examples/7_integers.py
"""

import keywright as kw
import numpy as np

CANDIDATES, VOTERS = 5, 12


def main() -> None:
    """Encrypt votes, add them, decrypt the counts."""
    parameters = kw.bfv.Parameters.preset("N12_QP106_T17")
    secret = kw.SecretKey.generate(parameters)
    encryptor = kw.bfv.Encryptor(kw.KeyGenerator(secret).public_key())

    # Every voter puts a one in the slot of a candidate, with the public key of the party that counts.
    choices = np.random.default_rng(3).integers(0, CANDIDATES, VOTERS)
    votes = [encryptor.encrypt(np.eye(CANDIDATES, dtype=int)[choice]) for choice in choices]

    # The server adds ciphertexts. It has no keys: sums need none.
    evaluator = kw.bfv.Evaluator(parameters)
    total = evaluator(votes[0])
    for vote in votes[1:]:
        total = total + vote
    print(total)

    # The sum is exact, and its noise is within the estimate that every ciphertext carries.
    decryptor = kw.bfv.Decryptor(secret)
    counts = decryptor.decrypt(total.ciphertext)[:CANDIDATES].tolist()
    budget, bound = decryptor.noise_budget(total.ciphertext), total.ciphertext.budget_bound
    print(f"counts {counts} of {VOTERS} votes")
    print(f"noise budget {budget:.1f} bits, at least {bound:.1f} by the estimate")
    if counts != np.bincount(choices, minlength=CANDIDATES).tolist() or budget < bound:
        raise AssertionError("the counts or their noise are not as they should be")


if __name__ == "__main__":
    main()
