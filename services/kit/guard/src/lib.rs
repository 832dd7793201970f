//! Threat patterns and unicode checks for text that may become an instruction.
