//! Wall and CPU time of pieces of work, and what is said about many of them.
//!
//! CPU time is that of the whole process, so it counts every thread that took part: the caller, the runtime, the thread
//! of the SQLite connection. Nothing else may run in the process while it is taken.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

/// Times of the same piece of work, done many times.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

impl Meter {
    /// Does the work and keeps how long it took.
    pub(crate) async fn time<T>(&mut self, work: impl Future<Output = T>) -> T {
        let (wall, cpu) = (Instant::now(), ProcessTime::now());
        let done = work.await;
        self.cpu.push(cpu.elapsed());
        self.wall.push(wall.elapsed());
        done
    }

    /// Does work that waits for nothing and keeps how long it took.
    pub(crate) fn time_blocking<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (wall, cpu) = (Instant::now(), ProcessTime::now());
        let done = work();
        self.cpu.push(cpu.elapsed());
        self.wall.push(wall.elapsed());
        done
    }

    /// Wall times.
    pub(crate) fn wall(&self) -> Spread {
        Spread::new(self.wall.clone())
    }

    /// CPU times.
    pub(crate) fn cpu(&self) -> Spread {
        Spread::new(self.cpu.clone())
    }
}

/// Durations in order.
#[derive(Debug, Clone)]
pub(crate) struct Spread(Vec<Duration>);

impl Spread {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// All together.
    pub(crate) fn sum(&self) -> Duration {
        self.0.iter().sum()
    }

    /// The median, in milliseconds.
    pub(crate) fn p50(&self) -> f64 {
        self.at(500)
    }

    /// What one in a hundred exceeds, in milliseconds.
    pub(crate) fn p99(&self) -> f64 {
        self.at(990)
    }

    /// The longest, in milliseconds.
    pub(crate) fn longest(&self) -> f64 {
        millis(self.0.last().copied().unwrap_or_default())
    }

    /// How many of them fit into a second.
    pub(crate) fn per_second(&self) -> f64 {
        per_second(self.count(), self.sum())
    }

    /// The nearest rank, so that it is always a time that was measured.
    fn at(&self, permille: usize) -> f64 {
        let rank = (self.0.len() * permille).div_ceil(1_000).max(1) - 1;
        millis(self.0.get(rank).copied().unwrap_or_default())
    }
}

/// A process's own CPU time and the wall's, from one moment on.
#[derive(Debug)]
pub(crate) struct Watch {
    wall: Instant,
    cpu: ProcessTime,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self {
            wall: Instant::now(),
            cpu: ProcessTime::now(),
        }
    }

    pub(crate) fn wall(&self) -> Duration {
        self.wall.elapsed()
    }

    pub(crate) fn cpu(&self) -> Duration {
        self.cpu.elapsed()
    }
}

/// Milliseconds to a tenth of a microsecond.
pub(crate) fn millis(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1_000.0)
}

/// How many there were in a second.
pub(crate) fn per_second(count: usize, time: Duration) -> f64 {
    rounded(number(count) / time.as_secs_f64().max(1e-9))
}

/// Time of each, in milliseconds.
pub(crate) fn millis_each(time: Duration, count: usize) -> f64 {
    rounded(time.as_secs_f64() * 1_000.0 / number(count).max(1.0))
}

/// One number through another.
pub(crate) fn ratio(whole: u64, count: usize) -> f64 {
    let whole = u32::try_from(whole / 1_024).map_or(f64::MAX, f64::from) * 1_024.0
        + f64::from(u32::try_from(whole % 1_024).unwrap_or_default());
    rounded(whole / number(count).max(1.0))
}

/// To four places: what follows is noise.
pub(crate) fn rounded(figure: f64) -> f64 {
    (figure * 10_000.0).round() / 10_000.0
}

/// A count as a figure.
pub(crate) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let spread = Spread::new((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!((spread.p50(), spread.p99(), spread.longest()), (50.0, 99.0, 100.0));
        let one = Spread::new(vec![Duration::from_micros(1_500)]);
        assert_eq!((one.p50(), one.p99(), one.longest()), (1.5, 1.5, 1.5));
        assert_eq!(Spread::new(Vec::new()).p99().to_string(), "0");
    }

    #[test]
    fn figures_are_rounded_to_what_can_be_told_apart() {
        assert_eq!(per_second(3, Duration::from_secs(2)).to_string(), "1.5");
        assert_eq!(ratio(10_001, 4).to_string(), "2500.25");
        assert_eq!(rounded(0.123_46).to_string(), "0.1235");
        assert_eq!(millis_each(Duration::from_secs(1), 3).to_string(), "333.3333");
    }
}
