//! One process of the binary under test: started, waited for until it says that it is ready, stopped or killed.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use steward_testkit::wait_for;

/// How long a process may take to end after it was asked to.
const END: Duration = Duration::from_secs(40);

/// A running process of the binary under test.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    endpoint: String,
    log: PathBuf,
}

impl Process {
    /// Starts the binary with `arguments` and waits for its ready line. Its log goes to `<logs>/<name>.log`, appended.
    pub fn start(name: &str, arguments: &[String], environment: &[(String, String)], logs: &Path) -> Self {
        std::fs::create_dir_all(logs).expect("the folder for logs can be made");
        let log = logs.join(format!("{name}.log"));
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .expect("a log file can be made");
        let mut child = Command::new(binary())
            .args(arguments)
            .envs(environment.iter().map(|(key, value)| (key.as_str(), value.as_str())))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(file))
            .spawn()
            .expect("the binary under test starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("stdout is text");
        let ready: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
        let endpoint = ready["endpoint"].as_str().unwrap_or_default().to_owned();
        let process = Self {
            name: name.to_owned(),
            child,
            endpoint,
            log,
        };
        assert!(
            !process.endpoint.is_empty(),
            "{name} did not become ready, it said {line:?}; its log:\n{}",
            process.log_text()
        );
        process
    }

    /// Runs the binary to its end, for verbs that do not serve.
    pub fn run_to_end(name: &str, arguments: &[String], logs: &Path) -> ExitStatus {
        std::fs::create_dir_all(logs).expect("the folder for logs can be made");
        let file = File::create(logs.join(format!("{name}.log"))).expect("a log file can be made");
        Command::new(binary())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(file))
            .status()
            .expect("the binary under test starts")
    }

    /// Where it answers.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Its id at the system.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it logged so far, over all its lives.
    pub fn log_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills it at once, with nothing written or closed (SIGKILL).
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop (SIGTERM) and waits for the end.
    pub async fn stop(mut self) -> ExitStatus {
        let id = Pid::from_raw(i32::try_from(self.child.id()).expect("process ids fit"));
        kill(id, Signal::SIGTERM).expect("our own child can be signalled");
        self.wait_for_end().await
    }

    /// Waits until it has ended by itself, for example at a failpoint.
    pub async fn wait_for_end(&mut self) -> ExitStatus {
        let child = &mut self.child;
        let mut status = None;
        wait_for(&format!("the end of {}", self.name), END, || {
            status = child.try_wait().expect("our own child can be waited for");
            let ended = status.is_some();
            async move { ended }
        })
        .await;
        status.expect("the condition holds")
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().ok().flatten().is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the binary to its end and gives what it printed.
pub fn run(arguments: &[String]) -> std::process::Output {
    Command::new(binary())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the binary under test starts")
}

/// The binary under test, which cargo builds beside the test that runs.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("tests lie in target/<profile>/deps");
    folder.join("steward-under-test")
}
