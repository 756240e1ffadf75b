"""Accounts, their quotas, and the audit."""
