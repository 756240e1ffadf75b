"""What studies and peers share: to set programs up, run them in turns, time, record, tabulate and draw."""
