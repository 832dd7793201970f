//! A decoder of server-sent events for streams that nobody vouches for: every line ending, a byte order mark, borders
//! anywhere (inside a character too), invalid UTF-8 (replaced, not fatal), and a limit on what one event may hold.
//!
//! It holds no connection: bytes are pushed in, events come out. Time and memory are linear in what was pushed.

/// One dispatched event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; `message` when there was none.
    pub event: String,
    /// The `data` lines, joined by line feeds.
    pub data: String,
    /// The last `id` seen on the stream so far; empty when there was none.
    pub last_id: String,
}

/// An event grew over the limit. The stream is of no further use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

/// The decoder of one stream.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    event: Vec<u8>,
    last_id: Vec<u8>,
    first_line: bool,
    after_cr: bool,
}

impl SseDecoder {
    /// A decoder whose events hold at most `limit` bytes, unfinished line included.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            event: Vec::new(),
            last_id: Vec::new(),
            first_line: true,
            after_cr: false,
        }
    }

    /// Takes the next bytes of the stream and appends the events that they complete to `out`.
    ///
    /// # Errors
    /// [`EventTooLarge`]; what was appended to `out` before is good.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<SseEvent>) -> Result<(), EventTooLarge> {
        let mut rest = chunk;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.grow_line(rest);
            };
            self.grow_line(&rest[..end])?;
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, out);
        }
        Ok(())
    }

    fn grow_line(&mut self, more: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + self.data.len() + self.event.len() + self.last_id.len() + more.len() > self.limit {
            return Err(EventTooLarge { limit: self.limit });
        }
        self.line.extend_from_slice(more);
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], out: &mut Vec<SseEvent>) {
        let first = std::mem::take(&mut self.first_line);
        let line = if first {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            self.dispatch(out);
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (
                &line[..colon],
                line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..]),
            ),
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.event = value.to_vec(),
            b"id" if !value.contains(&0) => self.last_id = value.to_vec(),
            // Comments (an empty field name), `retry` and unknown fields mean nothing here.
            _ => {}
        }
    }

    fn dispatch(&mut self, out: &mut Vec<SseEvent>) {
        let (event, data) = (std::mem::take(&mut self.event), std::mem::take(&mut self.data));
        if !std::mem::take(&mut self.has_data) {
            return;
        }
        let event = if event.is_empty() {
            "message".to_owned()
        } else {
            String::from_utf8_lossy(&event).into_owned()
        };
        let last_id = String::from_utf8_lossy(&self.last_id).into_owned();
        out.push(SseEvent {
            event,
            data: String::from_utf8_lossy(&data).into_owned(),
            last_id,
        });
    }
}

#[cfg(test)]
mod tests;
