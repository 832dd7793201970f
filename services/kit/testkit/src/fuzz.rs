//! Runs with input that a generator makes: short ones that belong to every test run, long ones on request. One place for
//! what such runs share: how long they last, how one is repeated, and what is shown of an input that broke something.
//!
//! A generator asks a [`Source`] for choices and makes an input of them; the check asserts. When a check panics, the same
//! choices are made fewer and lower as long as it still panics, and the smallest input is shown beside the seed. So no
//! generator has to know how its input is made smaller.
//!
//! - `STEWARD_FUZZ_SECONDS` is how long a long run lasts (600 unless set).
//! - `STEWARD_FUZZ_SEED` (decimal, or hexadecimal behind `0x`) is where a run begins: the seed that a failure names fails at
//!   once. A long run begins somewhere new each time unless it is set, a short one always at the same place.
//!
//! Some inputs end the whole process (a stack that is too small, a parser in another language): a long run writes each seed
//! down before it is tried, into a file that its first line names and that is gone when it ends well.
//!
//! This is no replacement for property tests of one function: it is for whatever reads what strangers wrote, where millions
//! of inputs are worth trying and a good input broken in a few places is worth more than a random one.

use std::cell::Cell;
use std::fmt::{self, Debug};
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::Deref;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Once;
use std::time::{Duration, Instant};

const SECONDS: u64 = 600;
const FIRST_SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// How often a smaller input is tried, and for how long: a failure is worth some seconds, not minutes.
const ATTEMPTS: u32 = 4_000;
const PATIENCE: Duration = Duration::from_secs(20);
/// How much of an input or of a message is shown, in bytes.
const SHOWN: usize = 8_000;

/// Where a generator takes its choices from. The same seed gives the same choices on every machine.
#[derive(Debug)]
pub struct Source {
    state: u64,
    /// What to answer before (or instead of) making up numbers; `None` outside of making an input smaller.
    script: Option<Vec<u64>>,
    made: Vec<u64>,
}

impl Source {
    /// A source of choices that look random.
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed | 1,
            script: None,
            made: Vec::new(),
        }
    }

    /// Gives the choices of `script`, each cut to what is asked for, and zero when they are used up.
    fn replaying(script: Vec<u64>) -> Self {
        Self {
            state: 1,
            script: Some(script),
            made: Vec::new(),
        }
    }

    fn choose(&mut self, last: u64) -> u64 {
        let choice = if let Some(script) = &self.script {
            script.get(self.made.len()).copied().unwrap_or(0).min(last)
        } else {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            last.checked_add(1).map_or(self.state, |limit| self.state % limit)
        };
        self.made.push(choice);
        choice
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.choose(u64::MAX)
    }

    /// A number below `limit`; 0 if `limit` is 0. Zero should be the simplest choice.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.choose((limit.max(1) - 1) as u64)).expect("below a number of this size")
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).expect("below 256")
    }

    /// One of `values`, of which there is at least one.
    pub fn one_of<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len())]
    }
}

/// Bytes that a failure shows readably.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Debug for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "b\"{}\"", self.0.escape_ascii())
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Checks what `make` makes for as long as `STEWARD_FUZZ_SECONDS` says and prints how much that was. Fails the test with the
/// seed and the smallest input that still breaks `check`.
pub fn long_run<I: Debug>(make: impl Fn(&mut Source) -> I, check: impl Fn(&I)) {
    let seconds = number_from("STEWARD_FUZZ_SECONDS").unwrap_or(SECONDS);
    let first = number_from("STEWARD_FUZZ_SEED").unwrap_or_else(|| RandomState::new().build_hasher().finish());
    let began = Instant::now();
    let diary = Diary::begin(first);
    let end = |_, seed| {
        diary.note(seed);
        began.elapsed() >= Duration::from_secs(seconds)
    };
    let runs = run(first, end, &make, &check);
    diary.end(runs, began.elapsed());
}

/// Checks `runs` inputs of `make`, the same ones each time. Fails like [`long_run`].
pub fn short_run<I: Debug>(runs: u64, make: impl Fn(&mut Source) -> I, check: impl Fn(&I)) {
    let first = number_from("STEWARD_FUZZ_SEED").unwrap_or(FIRST_SEED);
    run(first, |done, _| done == runs, &make, &check);
}

fn run<I: Debug>(
    first: u64,
    end: impl Fn(u64, u64) -> bool,
    make: &impl Fn(&mut Source) -> I,
    check: &impl Fn(&I),
) -> u64 {
    let (mut seed, mut runs) = (first, 0);
    while !end(runs, seed) {
        let mut source = Source::new(seed);
        let input = make(&mut source);
        if let Err(message) = outcome(&input, check) {
            let (input, message, tries) = smallest(source.made, make, check).unwrap_or((input, message, 0));
            fail(seed, runs, tries, &input, &message);
        }
        seed = seed
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        runs += 1;
    }
    assert!(runs > 0, "a run of nothing shows nothing");
    runs
}

#[expect(clippy::panic, reason = "a check that fails fails the test")]
fn fail(seed: u64, runs: u64, tries: u32, input: &impl Debug, message: &str) -> ! {
    panic!(
        "seed {seed:#x} after {runs} good runs: {}\nsmallest input, after {tries} tries: {}",
        shown(message),
        shown(&format!("{input:?}"))
    );
}

fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN)]
}

/// The message of the panic, if there was one.
fn outcome<I>(input: &I, check: &impl Fn(&I)) -> Result<(), String> {
    quietly(|| catch_unwind(AssertUnwindSafe(|| check(input)))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without words")
            .to_owned()
    })
}

/// The smallest input that still breaks `check`, its message, and how many were tried. `None` if the choices that broke it do
/// not break it again: the check is not a function of its input.
fn smallest<I>(choices: Vec<u64>, make: &impl Fn(&mut Source) -> I, check: &impl Fn(&I)) -> Option<(I, String, u32)> {
    let (began, mut tries) = (Instant::now(), 0_u32);
    let mut attempt = |script: Vec<u64>| {
        tries += 1;
        let mut source = Source::replaying(script);
        let input = make(&mut source);
        let message = outcome(&input, check).err()?;
        Some((source.made, input, message, tries))
    };
    let mut best = attempt(choices)?;
    loop {
        let found = simpler(&best.0)
            .take(ATTEMPTS.saturating_sub(best.3) as usize)
            .take_while(|_| began.elapsed() < PATIENCE)
            .filter_map(&mut attempt)
            .find(|found| (found.0.len(), &found.0) < (best.0.len(), &best.0));
        match found {
            Some(found) => best = found,
            None => return Some((best.1, best.2, best.3)),
        }
    }
}

/// Choices that are simpler than these, the boldest first: a stretch left out, a choice made lower, and both together, since
/// a choice is often how many others follow.
fn simpler(choices: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    let sizes = std::iter::successors(Some(choices.len()), |size| Some(size / 2)).take_while(|size| *size > 0);
    let fewer = sizes.flat_map(move |size| {
        (0..choices.len()).step_by(size).map(move |start| {
            let end = (start + size).min(choices.len());
            [&choices[..start], &choices[end..]].concat()
        })
    });
    let lower = (0..choices.len()).flat_map(move |at| {
        let was = choices[at];
        let steps = [0, was / 2, was.saturating_sub(1)];
        steps.into_iter().filter(move |step| *step < was).map(move |step| {
            let mut choices = choices.to_vec();
            choices[at] = step;
            choices
        })
    });
    let both = (0..choices.len()).filter(|at| choices[*at] > 0).flat_map(move |at| {
        (at + 1..choices.len()).map(move |gone| {
            let mut choices = choices.to_vec();
            choices[at] -= 1;
            choices.remove(gone);
            choices
        })
    });
    fewer.chain(lower).chain(both)
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Does `work` without a report of each panic on this thread: an input is made smaller by thousands of them.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = work();
    QUIET.set(before);
    result
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var_os(variable)?;
    let number = text.to_str().and_then(|text| match text.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
        None => text.parse().ok(),
    });
    Some(number.unwrap_or_else(|| wrong(variable)))
}

#[expect(
    clippy::panic,
    reason = "a wrong setting fails the test rather than being passed over"
)]
fn wrong(variable: &str) -> ! {
    panic!("{variable} is a number, decimal or hexadecimal behind 0x")
}

/// What a long run says of itself, and the seed that it tries just now.
struct Diary {
    name: String,
    path: PathBuf,
    file: File,
}

#[expect(
    clippy::print_stdout,
    reason = "how much was tried is the result of a run that finds nothing"
)]
impl Diary {
    fn begin(first: u64) -> Self {
        let name = std::thread::current().name().unwrap_or("run").replace("::", "-");
        let path = std::env::temp_dir().join(format!("steward-fuzz-{name}-{}", std::process::id()));
        let file = File::create(&path).expect("a file in the folder for temporary ones");
        println!("{name}: from seed {first:#x}; the one at work is in {}", path.display());
        Self { name, path, file }
    }

    fn note(&self, seed: u64) {
        let line = format!("{seed:#018x}\n");
        self.file.write_all_at(line.as_bytes(), 0).expect("room for one line");
    }

    fn end(self, runs: u64, time: Duration) {
        std::fs::remove_file(&self.path).expect("the file is this run's own");
        println!("{}: {runs} inputs in {} s, all well", self.name, time.as_secs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(source: &mut Source) -> Bytes {
        Bytes((0..source.below(60)).map(|_| source.byte()).collect())
    }

    fn message(work: impl Fn()) -> String {
        let panic = quietly(|| catch_unwind(AssertUnwindSafe(work))).expect_err("a failure");
        panic.downcast_ref::<String>().expect("words").clone()
    }

    #[test]
    fn a_failure_names_its_seed_and_the_smallest_input_that_still_fails() {
        let said = message(|| {
            short_run(10_000, bytes, |bytes| {
                assert!(bytes.iter().filter(|byte| **byte > 99).count() < 3, "three are high");
            });
        });
        assert!(said.contains("three are high"), "{said}");
        assert!(said.contains("smallest input") && said.ends_with(r#"b"ddd""#), "{said}");
        let seed = said
            .strip_prefix("seed 0x")
            .and_then(|rest| rest.split(' ').next())
            .expect("a seed");
        let seed = u64::from_str_radix(seed, 16).expect("hexadecimal");
        let again = bytes(&mut Source::new(seed));
        assert!(
            again.iter().filter(|byte| **byte > 99).count() >= 3,
            "the seed repeats it"
        );
    }

    #[test]
    fn a_run_that_finds_nothing_tries_as_many_different_inputs_as_it_says() {
        let (seen, count) = (std::cell::RefCell::new(std::collections::BTreeSet::new()), Cell::new(0));
        short_run(500, Source::number, |number| {
            seen.borrow_mut().insert(*number);
            count.set(count.get() + 1);
        });
        assert_eq!((count.get(), seen.borrow().len()), (500, 500));
    }

    #[test]
    fn a_check_that_fails_only_once_is_still_a_failure() {
        let failed = Cell::new(false);
        let said = message(|| {
            short_run(3, bytes, |_| assert!(failed.replace(true), "only the first time"));
        });
        assert!(
            said.contains("only the first time") && said.contains("after 0 tries"),
            "{said}"
        );
    }
}
