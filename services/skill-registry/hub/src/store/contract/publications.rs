//! What a store does with what a team publishes.

use steward_base::hash::sha256_hex;

use super::{Bench, RED, at, event};
use crate::audit::Action;
use crate::publish::Publication;

fn publication(archive: &str) -> Publication {
    Publication {
        name: "tidy".to_owned(),
        skill: "teams/red/skills/tidy".to_owned(),
        description: "Tidies.".to_owned(),
        front_matter: "name: tidy\n".to_owned(),
        archive: archive.to_owned(),
        size: 2,
        tree: "t".to_owned(),
        revision: "r".to_owned(),
        by: RED.user.to_owned(),
        at: at(1),
    }
}

/// The newest publication of a name counts, for its team alone, and ends once.
pub(super) async fn what_is_published_is_given_out_byte_for_byte(bench: &dyn Bench) {
    let store = bench.store();
    let [one, two] = [b"\x00\xff", b"\x01\xfe"].map(|bytes| sha256_hex(bytes));
    let (one, two) = (one.as_str(), two.as_str());
    for (digest, bytes) in [(one, b"\x00\xff"), (two, b"\x01\xfe")] {
        let said = event(Action::Publish, "tidy");
        let publication = publication(digest);
        let put = store.publish("red", &publication, bytes.to_vec(), at(1), said);
        put.await.expect("published");
    }
    assert_eq!(store.publications("red").await, Ok(vec![publication(two)]));
    assert_eq!(store.publications("blue").await, Ok(Vec::new()));
    assert_eq!(store.archive("red", "tidy", one).await, Ok(None), "it was replaced");
    assert_eq!(store.archive("red", "tidy", two).await, Ok(Some(b"\x01\xfe".to_vec())));
    assert_eq!(store.archive("blue", "tidy", two).await, Ok(None));
    for ended in [true, false] {
        let said = event(Action::Unpublish, "tidy");
        assert_eq!(store.unpublish("red", "tidy", at(2), said).await, Ok(ended));
    }
    assert_eq!(store.publications("red").await, Ok(Vec::new()));
    assert_eq!(store.archive("red", "tidy", two).await, Ok(None));
    assert_eq!(store.audit("red", 0, 10).await.expect("a log").len(), 3);
}
