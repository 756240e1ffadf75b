"""Federated averaging of encrypted updates, compared with plain FedAvg, TenSEAL and Chem."""
