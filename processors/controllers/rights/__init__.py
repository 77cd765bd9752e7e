"""Rights, logins and quotas on the clusters, exactly as the log says."""
