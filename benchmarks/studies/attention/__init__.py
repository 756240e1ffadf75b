"""BERT-tiny on encrypted sentences."""
