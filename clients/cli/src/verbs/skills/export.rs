//! `steward skills export`: skills as folders, byte for byte as they were written (`S-1`).

use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use steward_proto::skill::v1 as pb;

use super::named::{Among, among, resolve};
use super::{report, revisions};
use crate::connect::Session;
use crate::output::{Output, counted, first_line, json_of, printable, short};

/// Arguments of `steward skills export`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Names, categories with names or full resource names.
    #[arg(required = true)]
    skills: Vec<String>,
    /// Folder to put the skills' folders into; the present one by default.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// An earlier revision, or its beginning; with one skill only.
    #[arg(long, default_value = "", hide_default_value = true)]
    revision: String,
    /// Look among the archived ones.
    #[arg(long)]
    archived: bool,
}

/// Runs the verb. With `--json` and without `--dir` nothing is written: the answer holds the files.
pub(super) async fn run(arguments: Arguments, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    ensure!(
        arguments.revision.is_empty() || arguments.skills.len() == 1,
        "--revision goes with one skill"
    );
    let write = arguments.dir.is_some() || !output.is_json();
    let root = arguments.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let mut answers = Vec::with_capacity(arguments.skills.len());
    for (index, given) in arguments.skills.iter().enumerate() {
        output.progress(&format!("skill {} of {}", index + 1, arguments.skills.len()));
        let answer = fetch(given, &arguments, session).await;
        output.progress("");
        let answer = answer?;
        if write {
            let folder = save(&root, &answer)?;
            if !output.is_json() {
                let said = report::line(answer.report.as_ref()).map_or_else(String::new, |line| format!("; {line}"));
                output.line(&format!(
                    "{}: {}, revision {}{said}",
                    printable(&folder.display().to_string()),
                    counted(answer.files.len(), "file"),
                    first_line(&answer.revision, 13)
                ));
            }
        }
        answers.push(answer);
    }
    if !output.is_json() {
        return Ok(());
    }
    if let [one] = answers.as_slice() {
        return output.answer(one, |_, _| {});
    }
    let skills: Vec<_> = answers.iter().map(json_of).collect::<anyhow::Result<_>>()?;
    output.document(&serde_json::json!({ "skills": skills }))
}

async fn fetch(given: &str, arguments: &Arguments, session: &Session) -> anyhow::Result<pb::ExportSkillResponse> {
    let name = resolve(given, among(arguments.archived), session).await?;
    let revision = match among(arguments.archived) {
        Among::Listed => revisions::whole(&name, arguments.revision.clone(), session).await?,
        Among::Archived => arguments.revision.clone(),
    };
    let request = pb::ExportSkillRequest { name, revision };
    Ok(session.client.exchange.export_skill(request).await?)
}

/// Writes the files into a new folder below `root`. A server's paths are not trusted to stay in it.
fn save(root: &Path, answer: &pb::ExportSkillResponse) -> anyhow::Result<PathBuf> {
    ensure!(
        is_plain(&answer.folder) && !answer.folder.contains('/'),
        "the server names no folder"
    );
    let folder = root.join(&answer.folder);
    if let Some(file) = answer.files.iter().find(|file| !is_plain(&file.path)) {
        bail!(
            "the server names a file outside of the skill: {}",
            printable(&file.path)
        );
    }
    std::fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
    std::fs::create_dir(&folder).with_context(|| {
        format!(
            "cannot make {}; what is there is not written over, give another --dir",
            folder.display()
        )
    })?;
    for file in &answer.files {
        let path = folder.join(&file.path);
        let above = path.parent().unwrap_or(&folder);
        std::fs::create_dir_all(above)
            .and_then(|()| std::fs::write(&path, &file.content))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(root.join(short(&answer.folder)))
}

/// Whether a path has nothing but names in it.
fn is_plain(path: &str) -> bool {
    let mut parts = Path::new(path).components().peekable();
    parts.peek().is_some() && !path.contains(['\\', '\0']) && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(folder: &str, files: &[(&str, &[u8])]) -> pb::ExportSkillResponse {
        let files = files.iter().map(|(path, content)| pb::SkillContent {
            path: (*path).to_owned(),
            content: content.to_vec().into(),
        });
        pb::ExportSkillResponse {
            folder: folder.to_owned(),
            files: files.collect(),
            ..pb::ExportSkillResponse::default()
        }
    }

    #[test]
    fn files_are_written_byte_for_byte_and_never_over_others() {
        let root = tempfile::tempdir().unwrap();
        let skill = answer("nightly", &[("SKILL.md", b"text\r\n"), ("assets/a.bin", &[0xff, 0])]);
        let folder = save(root.path(), &skill).unwrap();
        assert_eq!(std::fs::read(folder.join("SKILL.md")).unwrap(), b"text\r\n");
        assert_eq!(std::fs::read(folder.join("assets/a.bin")).unwrap(), [0xff, 0]);
        assert!(save(root.path(), &skill).is_err());
    }

    #[test]
    fn a_server_cannot_write_outside_of_the_folder() {
        let root = tempfile::tempdir().unwrap();
        for path in ["../evil", "/evil", "a/../../evil", "", "a\\..\\evil"] {
            let error = save(root.path(), &answer("nightly", &[(path, b"x")])).unwrap_err();
            assert!(error.to_string().contains("outside"), "{path}: {error}");
        }
        for folder in ["", "..", "/tmp/x", "a/b"] {
            assert!(
                save(root.path(), &answer(folder, &[("SKILL.md", b"x")])).is_err(),
                "{folder}"
            );
        }
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
