//! Model providers over HTTP: neutral requests, streaming replies, usage.
