"""The bill of materials, by the validator of the CycloneDX project."""

import json
import sys
import zipfile
from pathlib import Path

from release.installed.trial import Failed, environment, fresh, one, run
from release.installed.wheel import programs

VALIDATOR = "cyclonedx-python-lib[json-validation]>=11,<12"

VALIDATE = """\
import sys
from pathlib import Path
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(Path(sys.argv[1]).read_text(encoding="utf-8"))
sys.exit(None if error is None else str(error))
"""


def try_materials(files: Path, scratch: Path) -> None:
    """Validate the bill of materials; every wheel has the same."""
    materials = one(files, "keywright-*.cdx.json")
    venv = fresh(scratch) / "venv"
    run(sys.executable, "-m", "venv", venv, cwd=scratch, env=environment())
    run(programs(venv) / "pip", "install", "--quiet", VALIDATOR, cwd=scratch, env=environment())
    run(programs(venv) / "python", "-c", VALIDATE, materials, cwd=scratch, env=environment())
    text = materials.read_bytes()
    wheels = sorted(files.glob("keywright-*-*linux_*.whl"))
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            inside = [name for name in archive.namelist() if name.endswith(f"/{materials.name}")]
            if [archive.read(name) for name in inside] != [text]:
                raise Failed(f"{wheel.name} has another bill of materials: {inside}")
    print(f"{len(json.loads(text)['components'])} components, valid CycloneDX 1.5, in {len(wheels)} wheels")
