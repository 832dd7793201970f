//! The tools that run on the person's machine: `shell`, `read_file`, `write_file`. Bounded in time and output; never run
//! without being asked (`approve`).

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use steward_proto::agent::v1 as pb;
use steward_proto::common::v1::Integrity;
use tokio::process::Command;

use super::secrets::Secrets;

/// Longest run of a command.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Most characters of output that go to the model; the middle is cut.
const OUTPUT_CHARS: usize = 20_000;
/// Largest file that is read.
const FILE_BYTES: u64 = 1 << 20;
/// Most names of environment variables that the server is told.
const MOST_VARIABLES: usize = 2_000;
/// Project files that are read when a conversation begins; the first kind that exists wins.
const CONTEXT_FILES: [&str; 5] = [".steward.md", "STEWARD.md", "AGENTS.md", "CLAUDE.md", ".cursorrules"];

/// What the server is told about the tools here.
pub(super) fn definitions() -> Vec<pb::ClientTool> {
    let tool = |name: &str, description: &str, schema: serde_json::Value| pb::ClientTool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema_json: schema.to_string(),
        integrity: Integrity::Workspace.into(),
    };
    let text = |about: &str| serde_json::json!({"type": "string", "description": about});
    vec![
        tool(
            "shell",
            "Runs a command with sh in the working folder and returns exit code and output. The person is asked first.",
            serde_json::json!({"type": "object", "properties": {"command": text("The command line.")},
                "required": ["command"], "additionalProperties": false}),
        ),
        tool(
            "read_file",
            "Returns the text of a file. The path is relative to the working folder, or absolute.",
            serde_json::json!({"type": "object", "properties": {"path": text("Path of the file.")},
                "required": ["path"], "additionalProperties": false}),
        ),
        tool(
            "write_file",
            "Writes a text file, replacing what it held; makes missing folders. The person is asked first.",
            serde_json::json!({"type": "object", "properties": {"path": text("Path of the file."),
                "content": text("Whole content of the file.")}, "required": ["path", "content"],
                "additionalProperties": false}),
        ),
    ]
}

/// Where the tools run.
pub(super) fn environment(folder: &Path) -> pb::Environment {
    let home = directories::BaseDirs::new().map(|folders| folders.home_dir().display().to_string());
    pb::Environment {
        os: std::env::consts::OS.to_owned(),
        home: home.unwrap_or_default(),
        working_dir: folder.display().to_string(),
        shell: "sh".to_owned(),
        // Names only: a skill that needs one which is not here has it asked for.
        variables: std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|name| !name.is_empty() && !name.chars().any(char::is_control))
            .take(MOST_VARIABLES)
            .collect(),
        variables_known: true,
    }
}

/// The project's own instructions: the first kind that is found in the folder; Steward's own also upwards to the root of
/// the repository (P-7).
pub(super) fn context_files(folder: &Path) -> Vec<pb::ContextFile> {
    for name in CONTEXT_FILES {
        let upwards = name.to_lowercase().ends_with("steward.md");
        for place in folder.ancestors() {
            let path = place.join(name);
            if let Ok(text) = std::fs::read_to_string(&path) {
                return vec![pb::ContextFile {
                    path: path.display().to_string(),
                    text,
                }];
            }
            if !upwards || place.join(".git").exists() {
                break;
            }
        }
    }
    Vec::new()
}

/// What a call wants, checked.
#[derive(Debug)]
pub(super) enum Call {
    /// Run a command.
    Shell { command: String },
    /// Read a file.
    ReadFile { path: PathBuf },
    /// Write a file.
    WriteFile { path: PathBuf, content: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellArguments {
    command: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    path: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: PathBuf,
    content: String,
}

impl Call {
    /// From what the model wrote; the error is for the model.
    pub(super) fn parse(tool: &str, arguments: &str, folder: &Path) -> Result<Self, String> {
        let wrong = |error: serde_json::Error| format!("the arguments of {tool} are wrong: {error}");
        match tool {
            "shell" => {
                let parsed: ShellArguments = serde_json::from_str(arguments).map_err(wrong)?;
                Ok(Self::Shell {
                    command: parsed.command,
                })
            }
            "read_file" => {
                let parsed: ReadArguments = serde_json::from_str(arguments).map_err(wrong)?;
                Ok(Self::ReadFile {
                    path: folder.join(parsed.path),
                })
            }
            "write_file" => {
                let parsed: WriteArguments = serde_json::from_str(arguments).map_err(wrong)?;
                Ok(Self::WriteFile {
                    path: folder.join(parsed.path),
                    content: parsed.content,
                })
            }
            other => Err(format!("this client has no tool named {other}")),
        }
    }

    /// What the person is shown before it runs.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Shell { command } => command.clone(),
            Self::ReadFile { path } => path.display().to_string(),
            Self::WriteFile { path, content } => format!("{} ({} characters)", path.display(), content.chars().count()),
        }
    }

    /// Runs it. `Err` is a failed result for the model.
    pub(super) async fn run(self, folder: &Path, secrets: &Secrets) -> Result<String, String> {
        match self {
            Self::Shell { command } => shell(&command, folder, secrets).await,
            Self::ReadFile { path } => read(&path).await,
            Self::WriteFile { path, content } => write(&path, &content).await,
        }
    }
}

async fn shell(command: &str, folder: &Path, secrets: &Secrets) -> Result<String, String> {
    let run = Command::new("sh")
        .arg("-c")
        .arg(command)
        .current_dir(folder)
        .envs(secrets.values())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match tokio::time::timeout(TIMEOUT, run).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(format!("the command could not be started: {error}")),
        Err(_) => return Err(format!("the command was stopped after {} seconds", TIMEOUT.as_secs())),
    };
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let code = output
        .status
        .code()
        .map_or_else(|| "killed by a signal".to_owned(), |code| format!("exit code {code}"));
    // What a command prints goes to the model: a value never does.
    let text = format!("{code}\n{}", cut(&secrets.hidden_in(text)));
    if output.status.success() { Ok(text) } else { Err(text) }
}

async fn read(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    let size = tokio::fs::metadata(path).await.map_err(failed)?.len();
    if size > FILE_BYTES {
        return Err(format!(
            "{} has {size} bytes; at most {FILE_BYTES} are read",
            path.display()
        ));
    }
    let bytes = tokio::fs::read(path).await.map_err(failed)?;
    Ok(cut(&String::from_utf8_lossy(&bytes)))
}

async fn write(path: &Path, content: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
    if let Some(parent) = path.parent() {
        tokio::fs::create_dir_all(parent).await.map_err(failed)?;
    }
    tokio::fs::write(path, content).await.map_err(failed)?;
    Ok(format!("wrote {} bytes to {}", content.len(), path.display()))
}

/// Head and tail of a long text, with what is missing between.
fn cut(text: &str) -> String {
    let count = text.chars().count();
    if count <= OUTPUT_CHARS {
        return text.to_owned();
    }
    let head: String = text.chars().take(OUTPUT_CHARS / 2).collect();
    let tail: String = text.chars().skip(count - OUTPUT_CHARS / 2).collect();
    format!("{head}\n[… {} characters left out …]\n{tail}", count - OUTPUT_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arguments_are_told_to_the_model() {
        assert!(
            Call::parse("shell", r#"{"cmd":"ls"}"#, Path::new("/"))
                .unwrap_err()
                .contains("unknown field")
        );
        assert!(
            Call::parse("format_disk", "{}", Path::new("/"))
                .unwrap_err()
                .contains("no tool named")
        );
    }

    #[tokio::test]
    async fn a_command_gives_its_exit_code_and_output() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            shell("echo hi", folder.path(), &Secrets::default()).await,
            Ok("exit code 0\nhi\n".to_owned())
        );
        assert_eq!(
            shell("echo no >&2; exit 3", folder.path(), &Secrets::default()).await,
            Err("exit code 3\nno\n".to_owned())
        );
    }

    #[tokio::test]
    async fn files_are_written_and_read_in_the_working_folder() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = r#"{"path":"a/b.txt","content":"x"}"#;
        Call::parse("write_file", arguments, folder.path())
            .unwrap()
            .run(folder.path(), &Secrets::default())
            .await
            .unwrap();
        let read = Call::parse("read_file", r#"{"path":"a/b.txt"}"#, folder.path()).unwrap();
        assert_eq!(read.run(folder.path(), &Secrets::default()).await.unwrap(), "x");
    }

    #[test]
    fn long_output_loses_its_middle_and_says_so() {
        let text = "x".repeat(OUTPUT_CHARS + 7);
        assert!(cut(&text).contains("[… 7 characters left out …]"));
    }

    #[test]
    fn the_first_kind_of_project_file_wins_and_steward_files_are_found_upwards() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("src");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        std::fs::write(root.path().join("AGENTS.md"), "agents at the root").unwrap();
        assert!(context_files(&inner).is_empty());
        std::fs::write(root.path().join("STEWARD.md"), "steward at the root").unwrap();
        assert_eq!(context_files(&inner)[0].text, "steward at the root");
        assert_eq!(context_files(root.path())[0].text, "steward at the root");
    }
}
