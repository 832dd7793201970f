//! Opening SQLite with one writer and many readers, migrations and error classes.
