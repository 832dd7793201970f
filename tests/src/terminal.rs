//! The binary at a terminal of its own: what is typed there, and everything that a person would see.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::errno::Errno;
use nix::pty::openpty;

use crate::process::binary;

/// A running verb whose three streams are one terminal.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keyboard: File,
    seen: Vec<u8>,
}

impl Terminal {
    /// Starts the binary with `arguments` at a terminal of the kind `kind` (`TERM`).
    pub fn start(arguments: &[String], kind: &str) -> Self {
        let ends = openpty(None, None).expect("a pseudo-terminal");
        let end = |of: &OwnedFd| Stdio::from(of.try_clone().expect("a descriptor can be doubled"));
        let child = Command::new(binary())
            .args(arguments)
            .env("TERM", kind)
            .stdin(end(&ends.slave))
            .stdout(end(&ends.slave))
            .stderr(Stdio::from(ends.slave))
            .spawn()
            .expect("the binary under test starts");
        Self {
            child,
            keyboard: File::from(ends.master),
            seen: Vec::new(),
        }
    }

    /// Waits until `text` was shown. Panics when the verb ends without it.
    pub fn wait_for(&mut self, text: &str) {
        while !self.screen().contains(text) {
            assert!(self.read(), "{text:?} was never shown, but {:?}", self.screen());
        }
    }

    /// Types.
    pub fn type_in(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("the terminal takes keys");
    }

    /// Waits for the end; gives how it ended and all that was shown.
    pub fn end(mut self) -> (ExitStatus, String) {
        while self.read() {}
        let status = self.child.wait().expect("our own child can be waited for");
        (status, self.screen())
    }

    /// All that was shown so far, with the codes that move the cursor.
    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Takes in what comes next; false at the end.
    fn read(&mut self) -> bool {
        let mut piece = [0; 4096];
        match self.keyboard.read(&mut piece) {
            Ok(0) => false,
            Ok(read) => {
                self.seen.extend(&piece[..read]);
                true
            }
            // So Linux says that nobody has the other end any more.
            Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => false,
            Err(error) => panic!("the terminal cannot be read: {error}"),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
