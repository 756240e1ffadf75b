"""How long do encrypted networks take, what memory, and are their labels those of the networks?"""
