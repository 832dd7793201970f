//! What there is to be found, by looking at every message: the measure of what search finds. It shares nothing with the
//! index but the wish that a word is found as a word and Han characters as they stand.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Corpus, Query, words};

/// For each query the lines of conversation (by the place of their first one) in which a message matches: holds all the
/// words, or the characters in a row.
pub(crate) fn truth(corpus: &Corpus, queries: &[Query]) -> Vec<BTreeSet<usize>> {
    let roots = corpus.roots();
    let mut holders: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut by_first: HashMap<char, Vec<usize>> = HashMap::new();
    for (place, query) in queries.iter().enumerate() {
        if query.class.is_latin() {
            holders.extend(query.text.split(' ').map(|word| (word, Vec::new())));
        } else if let Some(first) = query.text.chars().next() {
            by_first.entry(first).or_default().push(place);
        }
    }
    let mut found: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); queries.len()];
    let mut root_of_message = Vec::new();
    for (session, message) in corpus.searchable() {
        let text = message.searchable();
        let number = root_of_message.len();
        root_of_message.push(roots[session]);
        for word in words(&text).into_iter().collect::<HashSet<_>>() {
            if let Some(messages) = holders.get_mut(word.as_str()) {
                messages.push(number);
            }
        }
        for first in text.chars().collect::<HashSet<_>>() {
            for place in by_first.get(&first).into_iter().flatten() {
                if text.contains(&queries[*place].text) {
                    found[*place].insert(roots[session]);
                }
            }
        }
    }
    for (place, query) in queries.iter().enumerate().filter(|(_, query)| query.class.is_latin()) {
        let all = query
            .text
            .split(' ')
            .filter_map(|word| holders.get(word))
            .map(|messages| messages.iter().copied().collect::<BTreeSet<usize>>())
            .reduce(|one, other| one.intersection(&other).copied().collect());
        found[place] = all
            .unwrap_or_default()
            .into_iter()
            .map(|message| root_of_message[message])
            .collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{Class, Message, Role, Session, Source};
    use super::*;

    #[test]
    fn words_must_stand_in_one_message_and_characters_in_a_row() {
        let said = |text: &str| Message {
            role: Role::User,
            text: text.to_owned(),
            tool_name: None,
            calls: Vec::new(),
        };
        let session = |source, parent, texts: &[&str]| Session {
            source,
            parent,
            messages: texts.iter().map(|text| said(text)).collect(),
        };
        let corpus = Corpus {
            sessions: vec![
                session(Source::Chat, None, &["red fox", "部署完成"]),
                session(Source::Chat, Some(0), &["a red, slow fox"]),
                session(Source::Chat, None, &["red", "fox", "完，成"]),
                session(Source::Delegate, None, &["red fox 完成"]),
            ],
        };
        let query = |class, text: &str| Query {
            class,
            text: text.to_owned(),
        };
        let queries = [
            query(Class::En3, "fox red"),
            query(Class::En1, "red"),
            query(Class::Cjk2, "完成"),
        ];
        let expected = [BTreeSet::from([0]), BTreeSet::from([0, 2]), BTreeSet::from([0])];
        assert_eq!(truth(&corpus, &queries), expected);
    }
}
