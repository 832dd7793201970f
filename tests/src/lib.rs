//! What the end-to-end scenarios share: a stack in both shapes, a scripted model, and a person who uses it.
