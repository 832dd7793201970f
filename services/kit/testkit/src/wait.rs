//! Waiting for a condition, never for a time. The bound only says when to give up; no test passes or fails by how long
//! something took.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long a test waits for something that normally happens at once, on a machine that is busy with other builds.
pub const PATIENCE: Duration = Duration::from_secs(30);

const STEP: Duration = Duration::from_millis(5);

/// Polls `condition` until it holds; fails the test with "waited ... for `what`" when `timeout` is over.
pub async fn wait_for<C, F>(what: &str, timeout: Duration, mut condition: C)
where
    C: FnMut() -> F,
    F: Future<Output = bool>,
{
    wait_for_some(what, timeout, || {
        let holds = condition();
        async move { holds.await.then_some(()) }
    })
    .await;
}

/// Polls `probe` until it yields a value and returns it; fails the test like [`wait_for`].
pub async fn wait_for_some<T, P, F>(what: &str, timeout: Duration, mut probe: P) -> T
where
    P: FnMut() -> F,
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(
            Instant::now() < deadline,
            "waited {timeout:?} for {what}, and it did not happen"
        );
        sleep(STEP).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waits_until_the_condition_holds() {
        let mut polls = 0;
        wait_for("three polls", PATIENCE, || {
            polls += 1;
            let done = polls == 3;
            async move { done }
        })
        .await;
        assert_eq!(polls, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "for a thing that never comes")]
    async fn gives_up_with_a_sentence() {
        wait_for("a thing that never comes", Duration::from_millis(1), || async { false }).await;
    }
}
