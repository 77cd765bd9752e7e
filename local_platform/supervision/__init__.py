"""Services as processes: started, probed, watched, and found again."""
