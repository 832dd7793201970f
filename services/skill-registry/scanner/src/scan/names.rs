//! Names that imitate well-known ones: of packages that are installed, and of the skill itself.

use super::{Scan, Unit};

impl Scan<'_> {
    pub(super) fn look_alike_name(&mut self, unit: &Unit<'_>, name: &str) {
        let imitated = name.split('-').find_map(|word| {
            let known = &self.rules.popular.publishers;
            let near = known
                .iter()
                .find(|publisher| publisher.len() >= 6 && is_one_off(word, publisher));
            near.filter(|_| !known.iter().any(|publisher| publisher == word))
                .cloned()
        });
        if let Some(imitated) = imitated {
            let at = unit.text.text.find(name).unwrap_or(0);
            self.check_in(
                "look-alike-name",
                unit,
                at..at + name.len(),
                Some(format!("looks like {imitated}")),
            );
        }
    }

    /// Package names that are one letter off a well-known one.
    pub(super) fn names(&mut self) {
        let popular = &self.rules.popular;
        let mut found = Vec::new();
        for install in &self.capabilities.installs {
            let Some((manager, spec)) = install.split_once(':') else {
                continue;
            };
            if !matches!(
                manager,
                "pip" | "pip3" | "uv" | "pipx" | "npm" | "pnpm" | "yarn" | "bun" | "npx"
            ) {
                continue;
            }
            let end = spec.find(['=', '<', '>', '~', '[', '!', ';']).unwrap_or(spec.len());
            let name = spec
                .get(..end)
                .unwrap_or(spec)
                .trim_end_matches('@')
                .to_ascii_lowercase()
                .replace('_', "-");
            let name = name.split_once('@').map_or(name.as_str(), |(name, _)| name).to_owned();
            let known = popular
                .packages
                .iter()
                .chain(&popular.others)
                .any(|known| *known == name);
            let near = popular
                .packages
                .iter()
                .find(|known| known.len() >= 5 && is_one_off(&name, known));
            if let (false, Some(near)) = (known || name.len() < 5, near) {
                found.push((name.clone(), format!("{name} looks like {near}")));
            }
        }
        for (_, told) in found {
            self.check("look-alike-package", "SKILL.md", told.as_bytes(), 0..told.len(), None);
        }
    }
}

/// Whether two words differ by one letter put in, left out, changed, or by two neighbours exchanged.
fn is_one_off(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a == b || a.len().abs_diff(b.len()) > 1 {
        return false;
    }
    let start = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (a.get(start..).unwrap_or_default(), b.get(start..).unwrap_or_default());
    let tail = |skip_a: usize, skip_b: usize| a.get(skip_a..) == b.get(skip_b..);
    match a.len().cmp(&b.len()) {
        std::cmp::Ordering::Equal => {
            tail(1, 1) || a.len() > 1 && a.first() == b.get(1) && a.get(1) == b.first() && tail(2, 2)
        }
        std::cmp::Ordering::Less => tail(0, 1),
        std::cmp::Ordering::Greater => tail(1, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_letter_makes_an_imitation_and_two_do_not() {
        for name in ["reqeusts", "request", "requestss", "rrequests", "requezts"] {
            assert!(is_one_off(name, "requests"), "{name}");
        }
        for name in ["requests", "requ", "request-s3", "rqeuetss"] {
            assert!(!is_one_off(name, "requests"), "{name}");
        }
    }
}
