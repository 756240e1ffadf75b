"""Write SHA256SUMS of all files in target/packages/files: those of several machines, brought together."""

from release.archive import write_sums
from release.build import FILES

if __name__ == "__main__":
    print(write_sums(FILES), end="")
