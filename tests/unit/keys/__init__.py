"""What a key is good for: which ones are refused, for which mesh they sign, who holds them."""
