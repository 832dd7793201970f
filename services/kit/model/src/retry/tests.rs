//! The policy by itself. What it does to requests is in the suite that all providers pass.

use super::*;

#[test]
fn waits_grow_are_spread_and_stay_within_the_total() {
    let policy = RetryPolicy::default();
    let busy = ModelError::Overloaded {
        status: 503,
        message: String::new(),
        retry_after: None,
    };
    assert_eq!(
        policy.wait(1, &busy, Duration::ZERO, 0.0),
        Some(Duration::from_millis(500))
    );
    assert_eq!(policy.wait(3, &busy, Duration::ZERO, 1.0), Some(Duration::from_secs(4)));
    assert_eq!(policy.wait(4, &busy, Duration::ZERO, 1.0), None);
    assert_eq!(policy.wait(1, &busy, Duration::from_mins(3), 0.0), None);
}
