"""The commands that take the steps of `keywright infer` one by one."""
