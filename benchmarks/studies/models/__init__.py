"""What do models of four frameworks take, encrypted, and what accuracy do they keep?"""
