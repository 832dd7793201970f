//! Days and months that a question names, as the index knows them: `On May 4th`, `4 May 2023`, `2023-05-04`, `5月4日`,
//! `五月四号`. Days are those of UTC, as messages were appended.

use std::fmt::Write as _;

use crate::tokenizer::DAY_MARK;

/// Names of the months by their first three letters, which is how they are told apart.
const MONTHS: [(&str, &str); 12] = [
    ("jan", "january"),
    ("feb", "february"),
    ("mar", "march"),
    ("apr", "april"),
    ("may", "may"),
    ("jun", "june"),
    ("jul", "july"),
    ("aug", "august"),
    ("sep", "september"),
    ("oct", "october"),
    ("nov", "november"),
    ("dec", "december"),
];

/// A day or a month; parts that are not given are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    year: u32,
    month: u32,
    day: u32,
}

impl Named {
    /// Text whose tokens follow one another in the index on that day.
    pub(super) fn phrase(self) -> String {
        let mut out = String::new();
        if self.year > 0 {
            let _ = write!(out, "{DAY_MARK}y{:04}", self.year);
        }
        let _ = write!(out, "{DAY_MARK}m{:02}", self.month);
        if self.day > 0 {
            let _ = write!(out, "{DAY_MARK}d{:02}", self.day);
        }
        out
    }
}

/// The days and months that `text` names, at most four.
pub(super) fn named(text: &str) -> Vec<Named> {
    let pieces = pieces(text);
    let mut found: Vec<Named> = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        let (date, used) = han(&pieces[at..])
            .or_else(|| iso(&pieces[at..]))
            .or_else(|| english(&pieces[at..]))
            .unwrap_or((None, 1));
        found.extend(date.filter(|date| !found.contains(date)));
        at += used;
    }
    found.truncate(4);
    found
}

/// A number, a word, or one sign.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Number(u32),
    Word(String),
    Sign(char),
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for sign in text.chars().map(narrow) {
        match (sign, pieces.last_mut()) {
            (digit @ '0'..='9', Some(Piece::Number(number))) => {
                *number = number.saturating_mul(10).saturating_add(digit as u32 - '0' as u32);
            }
            (digit @ '0'..='9', _) => pieces.push(Piece::Number(digit as u32 - '0' as u32)),
            (letter, Some(Piece::Word(word))) if letter.is_ascii_alphabetic() => word.push(letter.to_ascii_lowercase()),
            (letter, _) if letter.is_ascii_alphabetic() => {
                pieces.push(Piece::Word(letter.to_ascii_lowercase().to_string()));
            }
            (blank, _) if blank.is_whitespace() || blank == ',' || blank == '.' => pieces.push(Piece::Sign(' ')),
            (other, _) => pieces.push(Piece::Sign(other)),
        }
    }
    pieces.dedup_by(|next, before| *next == Piece::Sign(' ') && *before == Piece::Sign(' '));
    pieces
}

/// Full-width digits are digits.
fn narrow(sign: char) -> char {
    match sign {
        '０'..='９' => char::from_u32(sign as u32 - '０' as u32 + '0' as u32).unwrap_or(sign),
        other => other,
    }
}

type Read = Option<(Option<Named>, usize)>;

fn date(year: u32, month: u32, day: u32) -> Option<Named> {
    let plausible = (1..=12).contains(&month) && day <= 31 && (year == 0 || (1900..=9_999).contains(&year));
    plausible.then_some(Named { year, month, day })
}

/// `2023年5月4日`, `5月4号`, `五月`.
fn han(pieces: &[Piece]) -> Read {
    let (year, start) = match pieces {
        [Piece::Number(year), Piece::Sign('年'), ..] => (*year, 2),
        _ => (0, 0),
    };
    let (month, used) = han_number(&pieces[start..])?;
    let after = start + used;
    if pieces.get(after) != Some(&Piece::Sign('月')) {
        return None;
    }
    let day = han_number(&pieces[after + 1..])
        .filter(|(_, used)| matches!(pieces.get(after + 1 + used), Some(Piece::Sign('日' | '号' | '號'))));
    let (day, end) = day.map_or((0, after + 1), |(day, used)| (day, after + 2 + used));
    Some((date(year, month, day), end))
}

/// A number in digits, or in Han up to 31.
fn han_number(pieces: &[Piece]) -> Option<(u32, usize)> {
    if let Some(Piece::Number(number)) = pieces.first() {
        return Some((*number, 1));
    }
    let digit = |piece: Option<&Piece>| match piece {
        Some(Piece::Sign(sign)) => "一二三四五六七八九"
            .chars()
            .zip(1..)
            .find(|(han, _)| han == sign)
            .map(|(_, number)| number),
        _ => None,
    };
    let tens = digit(pieces.first());
    let start = usize::from(tens.is_some());
    if pieces.get(start) == Some(&Piece::Sign('十')) {
        let ones = digit(pieces.get(start + 1));
        return Some((
            tens.unwrap_or(1) * 10 + ones.unwrap_or(0),
            start + 1 + usize::from(ones.is_some()),
        ));
    }
    tens.map(|number| (number, 1))
}

/// `2023-05-04`, `2023/5/4`.
fn iso(pieces: &[Piece]) -> Read {
    match pieces {
        [
            Piece::Number(year),
            Piece::Sign(one @ ('-' | '/')),
            Piece::Number(month),
            Piece::Sign(two),
            Piece::Number(day),
            ..,
        ] if one == two && *year >= 1_900 && *day > 0 => Some((date(*year, *month, *day), 5)),
        _ => None,
    }
}

/// `May 4th`, `4th of May`, `May 2023`, `in May`. A month's name alone is one only where it can be nothing else, or after `in`.
fn english(pieces: &[Piece]) -> Read {
    let words: Vec<(usize, &Piece)> = pieces
        .iter()
        .enumerate()
        .filter(|(_, piece)| !matches!(piece, Piece::Sign(' ')))
        .take(6)
        .collect();
    let word = |at: usize| match words.get(at) {
        Some((_, Piece::Word(word))) => Some(word.as_str()),
        _ => None,
    };
    let number = |at: usize| match words.get(at) {
        Some((_, Piece::Number(number))) => Some(*number),
        _ => None,
    };
    let used = |count: usize| words.get(count - 1).map_or(pieces.len(), |(at, _)| at + 1);
    let ordinal = |at: usize| usize::from(matches!(word(at), Some("st" | "nd" | "rd" | "th")));
    if let Some(day) = number(0).filter(|day| (1..=31).contains(day)) {
        let mut at = 1 + ordinal(1);
        at += usize::from(word(at) == Some("of"));
        let month = month(word(at)?)?;
        let year = number(at + 1).filter(|year| *year >= 1_900);
        return Some((
            date(year.unwrap_or(0), month, day),
            used(at + 1 + usize::from(year.is_some())),
        ));
    }
    let after_in = usize::from(word(0) == Some("in"));
    let name = word(after_in)?;
    let month = month(name)?;
    let at = after_in + 1;
    if let Some(day) = number(at).filter(|day| (1..=31).contains(day)) {
        let next = at + 1 + ordinal(at + 1);
        let year = number(next).filter(|year| *year >= 1_900);
        return Some((
            date(year.unwrap_or(0), month, day),
            used(next + usize::from(year.is_some())),
        ));
    }
    let year = number(at).filter(|year| *year >= 1_900);
    // `may` and `march` are words of their own.
    let is_certain =
        after_in == 1 || year.is_some() || !matches!(name, "may" | "march" | "mar" | "jan" | "dec" | "sep");
    Some((
        date(year.unwrap_or(0), month, 0).filter(|_| is_certain),
        used(at + usize::from(year.is_some())),
    ))
}

fn month(name: &str) -> Option<u32> {
    let found = MONTHS
        .iter()
        .zip(1..)
        .find(|((short, long), _)| name == *short || name == *long || (name == "sept" && *short == "sep"));
    found.map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn phrases(text: &str) -> Vec<String> {
        named(text)
            .into_iter()
            .map(|date| date.phrase().replace(DAY_MARK, " ").trim().to_owned())
            .collect()
    }

    #[test]
    fn days_are_read_as_people_write_them() {
        for (text, expected) in [
            ("What did I say on May 4th?", "m05 d04"),
            ("on the 4th of May", "m05 d04"),
            ("4 May 2023, was it?", "y2023 m05 d04"),
            ("December 25, 2022", "y2022 m12 d25"),
            ("since 2023-05-04", "y2023 m05 d04"),
            ("2023/5/4", "y2023 m05 d04"),
            ("in May we", "m05"),
            ("in october 2021", "y2021 m10"),
            ("last August", "m08"),
            ("我5月4日说了什么", "m05 d04"),
            ("在４月２７号这天", "m04 d27"),
            ("2023年十二月二十五日", "y2023 m12 d25"),
            ("五月的时候", "m05"),
            ("十月三十一号", "m10 d31"),
        ] {
            assert_eq!(phrases(text), [expected], "{text}");
        }
        assert_eq!(phrases("between May 1 and May 2"), ["m05 d01", "m05 d02"]);
    }

    #[test]
    fn what_is_no_day_is_none() {
        for text in [
            "may I ask",
            "march on",
            "13月",
            "June 45th",
            " 1.2.3",
            "10-20-30",
            "",
            "月",
            "2023年",
            "the 4th",
        ] {
            assert!(
                phrases(text).iter().all(|phrase| phrase == "m06"),
                "{text}: {:?}",
                phrases(text)
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\PC|[0-9]{1,5}|年|月|日|十|May|of|th| |-){0,30}") {
            prop_assert!(named(&text).len() <= 4);
        }
    }
}
