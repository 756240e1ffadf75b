"""One reader under atheris, libFuzzer for Python: inputs that reach new code are kept and mutated further.

    python fuzz/python/fuzz_reader.py READER [-max_total_time=S] [FOLDER_TO_KEEP_IN] [FOLDER_TO_START_FROM]

Options are libFuzzer's. `fuzz/run.py` runs all readers.
"""

import shlex
import sys

import atheris

with atheris.instrument_imports(include=["keywright", "json", "zipfile"]):
    from readers import READERS, limited_memory


def main(arguments: list[str]) -> None:
    """Run the named reader until libFuzzer ends the process."""
    reader = READERS[arguments[1]]

    def read(data: bytes) -> None:
        reader.run(data)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        return reader.mutate(data, most, seed, atheris.Mutate)

    # libFuzzer starts itself by this command to merge inputs.
    itself = shlex.join([sys.executable, *arguments[:2]])
    options = [itself, f"-max_len={reader.longest}", *arguments[2:]]
    atheris.Setup(options, read, custom_mutator=mutate)
    with limited_memory():
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
