//! The built-in tools of the agent: their definitions, and one dispatch to the services behind them.
