"""The two articles' claims, each checked: by the account, by the speed model, by prices, or by evidence."""
