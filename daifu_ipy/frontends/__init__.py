"""Who answers a crash: a prompt, a panel, or nobody."""
