"""`python -m studies.attention`. A spawned process cannot import what stands here."""

from studies.attention.study import main

if __name__ == "__main__":
    main()
