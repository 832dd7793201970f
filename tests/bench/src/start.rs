//! `start`: the real binary, from its start to its ready line, on a fresh data folder and again on the same one; what it
//! takes when it does nothing; its size. The floor is the same binary saying its version: load, link, parse, end.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::arguments::{Arguments, Start};
use crate::machine::resident_mib;
use crate::measure::{Meter, Spread, Watch, millis, rounded};

/// Readings of memory that must agree for the process to count as idle, and how many are taken at most.
const AGREEING: u32 = 5;
const READINGS: u32 = 100;
/// Time between two readings.
const STEP: Duration = Duration::from_millis(100);

pub(crate) async fn run(options: &Start, arguments: &Arguments) -> anyhow::Result<Value> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => beside()?,
    };
    ensure!(
        binary.is_file(),
        "there is no {}; build it with the same profile (`cargo build -p steward`) or name one with --binary",
        binary.display()
    );
    let folder = arguments.fresh_folder()?;
    let data = folder.path().join("data");

    let (first, process) = Running::start(&binary, &data)?;
    process.stop()?;
    let (mut ready, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..options.runs {
        let (time, process) = Running::start(&binary, &data)?;
        ready.push(time);
        idle.push(process.idle_mib().await?);
        process.stop()?;
    }
    idle.sort_by(f64::total_cmp);
    let ready = Spread::new(ready);
    let mut version = Meter::default();
    for _ in 0..options.runs {
        let ended = version.time_blocking(|| command(&binary).arg("--version").stdout(Stdio::null()).status())?;
        ensure!(ended.success(), "{} --version ended with {ended}", binary.display());
    }
    let bytes = std::fs::metadata(&binary)?.len();
    Ok(json!({
        "binary": binary.display().to_string(),
        "runs": options.runs,
        "ready_ms": ready.p50(),
        "ready_longest_ms": ready.longest(),
        "first_ready_ms": millis(first),
        "floor_ms": version.wall().p50(),
        "idle_rss_mib": idle.get(idle.len() / 2),
        "binary_mb": rounded(f64::from(u32::try_from(bytes / 1_000)?) / 1_000.0),
    }))
}

/// The binary that cargo puts beside this one.
fn beside() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("find this binary")?;
    Ok(own.with_file_name("steward"))
}

/// Nothing of this process's environment: settings in it would be the figures' too.
fn command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command.env_clear().stdin(Stdio::null());
    command
}

/// A process of the binary; killed when it is dropped.
struct Running(Child);

impl Running {
    /// Starts it and waits for its ready line. Gives how long that took.
    fn start(binary: &Path, data: &Path) -> anyhow::Result<(Duration, Self)> {
        let log = data.with_extension("log");
        let file = std::fs::File::create(&log).context("make a log file")?;
        let watch = Watch::start();
        let mut child = command(binary)
            .arg("--data-dir")
            .arg(data)
            .args(["--listen", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .with_context(|| format!("start {}", binary.display()))?;
        let stdout = child.stdout.take();
        let running = Self(child);
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout.take(64 * 1024)).read_line(&mut line)?;
        }
        let time = watch.wall();
        let ready: Value = serde_json::from_str(&line).unwrap_or_default();
        if ready["ready"] != json!(true) {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            bail!("{} did not become ready: {line}{log}", binary.display());
        }
        Ok((time, running))
    }

    /// Resident memory once it no longer changes, in MiB.
    async fn idle_mib(&self) -> anyhow::Result<f64> {
        let mut last = resident_mib(self.0.id())?;
        let mut agreeing = 0;
        for _ in 0..READINGS {
            tokio::time::sleep(STEP).await;
            let now = resident_mib(self.0.id())?;
            agreeing = if (now - last).abs() < 0.05 { agreeing + 1 } else { 0 };
            last = now;
            if agreeing == AGREEING {
                break;
            }
        }
        Ok(last)
    }

    /// Asks it to stop and waits for its end.
    fn stop(mut self) -> anyhow::Result<()> {
        kill(Pid::from_raw(i32::try_from(self.0.id())?), Signal::SIGTERM)?;
        let ended = self.0.wait()?;
        ensure!(ended.success(), "the process ended with {ended}");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when it has ended, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
