//! What is not secure and is here to show that.
