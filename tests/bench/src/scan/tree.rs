//! The skill that the scan bench reads: twenty files of 173 KB as published skills have them, prose with code blocks,
//! scripts in three languages, settings and data. The same on every machine.

use steward_skill_scanner::{File, Tree};

/// Files of the skill.
pub(crate) const FILES: usize = 20;
/// Bytes of the skill, about.
pub(crate) const BYTES: usize = 173 * 1024;

const SENTENCES: [&str; 8] = [
    "Read the table of settings before you change the pipeline, since the order of stages decides which rows survive.",
    "Each report names its source, the date of its last refresh and the person to ask when a number looks wrong.",
    "When a request fails, wait for the time that the answer names and repeat it; do not widen the window by hand.",
    "See https://docs.service.example/guide for the fields that the endpoint returns, and `schema.json` for their types.",
    "The user decides which branch is released; the skill prepares the notes and shows them for review.",
    "Keep the API key in the variable SERVICE_API_KEY and never write it into a file of the project.",
    "Größere Tabellen — mehr als tausend Zeilen — werden in Abschnitten gelesen, damit der Speicher reicht.",
    "Install the tools with your package manager, check their versions, and run the tests once before the first change.",
];
const SHELL: &str = "set -euo pipefail\nOUT=\"${1:-out}\"\nmkdir -p \"$OUT\"\ncurl -sS -H \"Authorization: Bearer $SERVICE_API_KEY\" https://api.service.example/v1/items -o \"$OUT/items.json\"\njq -r '.items[] | [.id, .name] | @tsv' \"$OUT/items.json\" | sort -u > \"$OUT/items.tsv\"\n";
const PYTHON: &str = "import os\nimport json\nfrom pathlib import Path\n\n\ndef load(path: Path) -> list[dict]:\n    \"\"\"Reads the rows of one file.\"\"\"\n    with path.open(encoding=\"utf-8\") as handle:\n        rows = json.load(handle)\n    return [row for row in rows if row.get(\"state\") != \"gone\"]\n\n\ndef headers() -> dict[str, str]:\n    key = os.environ[\"SERVICE_API_KEY\"]\n    return {\"Authorization\": f\"Bearer {key}\", \"Accept\": \", \".join([\"application/json\", \"text/plain\"])}\n\n";
const JAVASCRIPT: &str = "import fs from 'node:fs';\nimport path from 'node:path';\n\nexport function read(folder) {\n  return fs.readdirSync(folder)\n    .filter((name) => name.endsWith('.json'))\n    .map((name) => JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8')));\n}\n\n";

/// The skill.
pub(crate) fn skill() -> Tree {
    let mut tree = Tree::new();
    let each = BYTES / FILES;
    let header = "---\nname: sample\ndescription: Prepares the weekly report from the service's items.\n---\n";
    tree.insert("SKILL.md", File::plain(prose(header, each, 0).into_bytes()));
    for index in 1..12 {
        tree.insert(
            format!("references/part-{index:02}.md"),
            File::plain(prose("", each, index).into_bytes()),
        );
    }
    for index in 0..2 {
        tree.insert(
            format!("scripts/fetch-{index}.sh"),
            File::plain(repeated("#!/bin/sh\n", SHELL, each)),
        );
        tree.insert(
            format!("scripts/load_{index}.py"),
            File::plain(repeated("", PYTHON, each)),
        );
        tree.insert(
            format!("scripts/read-{index}.mjs"),
            File::plain(repeated("", JAVASCRIPT, each)),
        );
    }
    tree.insert(
        "assets/settings.json",
        File::plain(repeated(
            "",
            "{\"name\": \"value\", \"limit\": 40, \"on\": true},\n",
            each,
        )),
    );
    tree.insert(
        "assets/rows.csv",
        File::plain(repeated("id,name,count\n", "1041,some item of the list,17\n", each)),
    );
    tree
}

/// One line of a megabyte.
pub(crate) fn line() -> Tree {
    let mut tree = Tree::new();
    let words = "a long line of words with $variables, https://a.example/x and some 'quotes' that goes on and on ";
    let header = "---\nname: sample\ndescription: Has one line.\n---\n";
    tree.insert("SKILL.md", File::plain(format!("{header}Short.\n").into_bytes()));
    tree.insert(
        "references/line.md",
        File::plain(words.repeat((1 << 20) / words.len() + 1).into_bytes()),
    );
    tree
}

fn prose(header: &str, bytes: usize, seed: usize) -> String {
    let mut text = header.to_owned();
    let mut index = seed;
    while text.len() < bytes {
        text.extend(["\n## Part ", &index.to_string(), "\n\n"]);
        for step in 0..5 {
            text.push_str(SENTENCES[(index * 3 + step) % SENTENCES.len()]);
            text.push(if step == 4 { '\n' } else { ' ' });
        }
        match index % 3 {
            0 => text.extend(["\n```bash\n", SHELL, "```\n"]),
            1 => text.extend(["\n```python\n", PYTHON, "```\n"]),
            _ => text.push_str(
                "\n- one `item` of a list\n- another with **weight**\n\n| name | count |\n|---|---|\n| a | 1 |\n",
            ),
        }
        index += 1;
    }
    text
}

fn repeated(first: &str, piece: &str, bytes: usize) -> Vec<u8> {
    let mut text = first.to_owned();
    while text.len() < bytes {
        text.push_str(piece);
    }
    text.into_bytes()
}
