"""The programs that are measured, in turns: peers in processes of their own, and those of `suite`."""
