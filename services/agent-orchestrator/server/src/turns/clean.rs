//! The model's words without the fence of recalled memory (`M-17`): what streams goes through the scrubber, one for each
//! stream, and what is stored of the same answer is scrubbed as a whole.

use steward_agent::kernel::DeltaSink;
use steward_guard::fence::Scrubber;
use steward_model::Delta;

/// A sink in front of another one that the fence does not pass.
pub(super) struct Clean<'a> {
    scrubber: Scrubber,
    sink: &'a mut dyn DeltaSink,
}

impl<'a> Clean<'a> {
    pub(super) fn new(sink: &'a mut dyn DeltaSink) -> Self {
        Self {
            scrubber: Scrubber::new(),
            sink,
        }
    }

    pub(super) fn take(&mut self, delta: &Delta) {
        if let Delta::Text(text) = delta {
            let shown = self.scrubber.push(text);
            self.show(shown);
        } else {
            self.sink.take(delta);
        }
    }

    /// The stream is over, well or not: what was held back as a possible beginning of the fence is none.
    pub(super) fn finish(mut self) {
        let rest = self.scrubber.finish();
        self.show(rest);
    }

    fn show(&mut self, text: String) {
        if !text.is_empty() {
            self.sink.take(&Delta::Text(text));
        }
    }
}
