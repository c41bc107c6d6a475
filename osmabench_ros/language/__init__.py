"""Language models, text embedders, response cache, budgets."""
