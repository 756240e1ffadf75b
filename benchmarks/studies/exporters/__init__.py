"""Which operators are read as the exporters of four frameworks write them, in which opsets?"""
