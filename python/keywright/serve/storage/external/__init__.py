"""Storage on other machines: PostgreSQL and S3."""
