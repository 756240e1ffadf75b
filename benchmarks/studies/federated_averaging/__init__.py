"""Federated averaging of encrypted updates beside plain FedAvg, TenSEAL and Chem."""
