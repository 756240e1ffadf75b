"""Proves what the files beside this one assert, by induction over all cycles, inputs and states.

NAME.sv is the end of module NAME: assumptions about its inputs and assertions about its registers, put before
the module's own `endmodule`. The SAT solver of yosys proves the assertions: in the first cycles after a
reset, and in any cycle after those in which they held. Words as arguments choose modules.
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "syn"))

from hierarchy import YOSYS, needed, path_of  # noqa: E402

# Every proof begins in a reset; later ones come at any time.
RESET = """
  reg proof_begins = 1'b1;
  always @(posedge clk_i) proof_begins <= 1'b0;
  always @(*) if (proof_begins) assume (!rst_ni);
"""
SCRIPT = """
read_verilog -formal -sv -DSYNTHESIS {files}; hierarchy -top {module}{parameters}; rename -top {module};
proc; flatten; {cut} async2sync; memory_map; opt -full; dffunmap; clean;
sat -tempinduct -prove-asserts -set-assumes -seq 1 -maxsteps {steps} -verify {module}
"""


def prove(module: str, parameters: dict[str, int], steps: int, cut: str) -> None:
    """Ends the program with what yosys says if a module's assertions do not hold.

    The signals `cut` have any value at any time: what only leads to them plays no part in the proof.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in needed(module):
            text = path_of(each).read_text(encoding="utf-8")
            if each == module:
                proof = RESET + (HERE / f"{module}.sv").read_text(encoding="utf-8")
                head, _, tail = text.rpartition("endmodule")
                text = f"{head}{proof}endmodule{tail}"
            (folder / path_of(each).name).write_text(text, encoding="utf-8")
        files = " ".join(path_of(each).name for each in needed(module))
        values = "".join(f" -chparam {key} {value}" for key, value in parameters.items())
        script = SCRIPT.format(
            files=files,
            module=module,
            parameters=values,
            steps=steps,
            cut=f"cutpoint {cut}; clean;" if cut else "",
        )
        command = [YOSYS, "-q", "-p", " ".join(script.split())]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{module} is not proved: {done.stderr[-2000:]}")
    print(f"proved: {module}", flush=True)


def main() -> None:
    """Proves every module of proofs.toml."""
    proofs = tomllib.loads((HERE / "proofs.toml").read_text(encoding="utf-8"))
    for module, proof in proofs.items():
        if not sys.argv[1:] or module in sys.argv[1:]:
            prove(module, proof.get("parameters", {}), proof["steps"], proof.get("cut", ""))


if __name__ == "__main__":
    main()
