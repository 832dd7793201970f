//! Examples of the format, and the property that the cut of the chunks never matters.

use proptest::prelude::*;

use super::*;

fn decode(chunks: &[&[u8]]) -> Vec<(String, String, String)> {
    let (mut decoder, mut events) = (SseDecoder::new(1 << 20), Vec::new());
    for chunk in chunks {
        decoder.push(chunk, &mut events).expect("small enough");
    }
    events
        .into_iter()
        .map(|event| (event.event, event.data, event.last_id))
        .collect()
}

fn message(data: &str) -> (String, String, String) {
    ("message".to_owned(), data.to_owned(), String::new())
}

#[test]
fn every_line_ending_ends_a_line() {
    for stream in [
        "data: a\n\ndata: b\n\n",
        "data: a\r\rdata: b\r\r",
        "data: a\r\n\r\ndata: b\r\n\r\n",
    ] {
        assert_eq!(decode(&[stream.as_bytes()]), [message("a"), message("b")], "{stream:?}");
    }
}

#[test]
fn fields_follow_the_format() {
    let stream = b"\xef\xbb\xbf: comment\nevent: note\nid: 7\ndata:  two\ndata\ndata:three\nretry: 5\n\nevent: lost\n\ndata: x\n\ndata: unfinished";
    let expected = [
        ("note".to_owned(), " two\n\nthree".to_owned(), "7".to_owned()),
        ("message".to_owned(), "x".to_owned(), "7".to_owned()),
    ];
    assert_eq!(decode(&[stream]), expected);
}

#[test]
fn bad_bytes_are_replaced_and_do_not_end_the_stream() {
    assert_eq!(
        decode(&[b"data: a\xffb\n\ndata: c\n\n"]),
        [message("a\u{fffd}b"), message("c")]
    );
}

#[test]
fn an_endless_event_is_refused_whether_in_one_line_or_many() {
    let mut decoder = SseDecoder::new(100);
    let mut events = Vec::new();
    assert_eq!(
        decoder.push(&[b'x'; 101], &mut events),
        Err(EventTooLarge { limit: 100 })
    );
    let mut decoder = SseDecoder::new(100);
    let mut outcome = Ok(());
    for _ in 0..20 {
        outcome = outcome.and_then(|()| decoder.push(b"data: 12345678\n", &mut events));
    }
    assert!(outcome.is_err() && events.is_empty());
    let mut decoder = SseDecoder::new(100);
    for _ in 0..50 {
        decoder
            .push(b"data: 12345678\n\n", &mut events)
            .expect("each event is small");
    }
    assert_eq!(events.len(), 50);
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "data: h\u{e9}llo", "data:", "data", "event: x", "id: 1", "id: \0", ": c", "", "", "\u{feff}data: b", "data: \u{1f600}\u{4e2d}",
            ]),
            0..24,
        ),
        endings in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n"]), 24),
        cuts in prop::collection::vec(0usize..400, 0..12),
    ) {
        let stream: String = lines.iter().zip(&endings).flat_map(|(line, end)| [*line, *end]).collect();
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let whole = decode(&[bytes]);
        prop_assert_eq!(&decode(&parts), &whole);
        prop_assert_eq!(&decode(&single), &whole);
    }

    #[test]
    fn arbitrary_bytes_never_break_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..300) {
        let (left, right) = bytes.split_at(at.min(bytes.len()));
        prop_assert_eq!(decode(&[left, right]), decode(&[&bytes]));
    }
}
