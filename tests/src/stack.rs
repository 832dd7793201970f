//! A whole installation in a folder of its own, in either shape: one process with all services, or five processes that
//! reach each other over real ports. Scenarios take the shape as a parameter and never ask which one it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use steward_client::{Client, Credentials, Wire};
use steward_testkit::TempDir;

use crate::person::Person;
use crate::process::Process;

/// The services in the order in which they start: those that are called before those that call.
pub const SERVICES: [&str; 5] = [
    "recall-service",
    "memory-service",
    "skill-registry",
    "agent-orchestrator",
    "curator-worker",
];

/// How the services are spread over processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// All in one process on one port.
    One,
    /// Five processes on five ports.
    Split,
}

/// What a stack starts with.
#[derive(Debug, Clone, Default)]
pub struct StackOptions {
    /// Base URL of the model server; none configures no model.
    pub model: Option<String>,
    /// Settings by environment variable, for all processes.
    pub settings: Vec<(String, String)>,
}

impl StackOptions {
    /// With a model server, and a memory review due after every turn.
    pub fn with_model(base_url: &str) -> Self {
        Self {
            model: Some(base_url.to_owned()),
            settings: Vec::new(),
        }
    }

    /// With one more setting, for example `AGENT__NUDGES__MEMORY_TURNS=1`.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.settings.push((format!("STEWARD__{key}"), format!("{value}")));
        self
    }

    /// With one more variable of the environment that is no setting, for example `STEWARD_LOG`.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A running installation.
#[derive(Debug)]
pub struct Stack {
    shape: Shape,
    folder: TempDir,
    options: StackOptions,
    processes: BTreeMap<&'static str, Process>,
    /// Fixed once known, so that a process that comes back is found where it was.
    ports: BTreeMap<&'static str, String>,
    /// By how much the clocks of the processes are ahead.
    passed: Duration,
}

/// Name of the one process of [`Shape::One`].
const ALL: &str = "all";

impl Stack {
    /// Starts an installation in a fresh folder.
    pub fn start(name: &str, shape: Shape, options: StackOptions) -> Self {
        let mut stack = Self {
            shape,
            folder: TempDir::new(name),
            options,
            processes: BTreeMap::new(),
            ports: BTreeMap::new(),
            passed: Duration::ZERO,
        };
        if shape == Shape::Split {
            stack.init();
        }
        for member in stack.members() {
            stack.launch(member, &[]);
        }
        stack
    }

    /// The shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The process that runs a service.
    pub fn process(&self, service: &str) -> &Process {
        let member = self.member_of(service);
        self.processes
            .get(member)
            .unwrap_or_else(|| panic!("{member} is not running"))
    }

    /// All running processes by name.
    pub fn processes(&self) -> impl Iterator<Item = (&'static str, &Process)> {
        self.processes.iter().map(|(name, process)| (*name, process))
    }

    /// Kills the process that runs a service (SIGKILL).
    pub fn kill(&mut self, service: &str) {
        let member = self.member_of(service);
        self.processes
            .remove(member)
            .unwrap_or_else(|| panic!("{member} is not running"))
            .kill();
    }

    /// Asks the process that runs a service to stop, waits, and checks that it ended well.
    pub async fn stop(&mut self, service: &str) {
        let member = self.member_of(service);
        let process = self
            .processes
            .remove(member)
            .unwrap_or_else(|| panic!("{member} is not running"));
        let status = process.stop().await;
        assert!(status.success(), "{member} ended with {status}");
    }

    /// Waits until the process that runs a service has killed itself at a failpoint.
    pub async fn wait_for_crash(&mut self, service: &str) {
        let member = self.member_of(service);
        let mut process = self
            .processes
            .remove(member)
            .unwrap_or_else(|| panic!("{member} is not running"));
        let status = process.wait_for_end().await;
        assert!(!status.success(), "{member} ended well instead of being killed");
    }

    /// Kills everything at once.
    pub fn kill_all(&mut self) {
        for (_, process) in std::mem::take(&mut self.processes) {
            process.kill();
        }
    }

    /// Starts everything that does not run, where it was.
    pub fn start_all(&mut self) {
        for member in self.members() {
            if !self.processes.contains_key(member) {
                self.launch(member, &[]);
            }
        }
    }

    /// Asks everything to stop, callers first, and starts it again.
    pub async fn restart_all(&mut self) {
        let members = self.members();
        for member in members.iter().rev() {
            let process = self.processes.remove(member).expect("every member runs");
            let status = process.stop().await;
            assert!(status.success(), "{member} ended with {status}");
        }
        for member in members {
            self.launch(member, &[]);
        }
    }

    /// Lets time pass for all processes, which read their clocks from now on as if it had.
    pub fn let_pass(&mut self, time: Duration) {
        self.passed += time;
        // Written aside and renamed, so that nobody reads half a number.
        let aside = self.folder.join("clock.new");
        std::fs::write(&aside, self.passed.as_secs().to_string()).expect("a file in our own folder");
        std::fs::rename(&aside, self.clock_file()).expect("a file in our own folder");
    }

    fn clock_file(&self) -> PathBuf {
        self.folder.join("clock")
    }

    /// Starts the process that runs a service again, where it was.
    pub fn start_again(&mut self, service: &str) {
        let member = self.member_of(service);
        self.launch(member, &[]);
    }

    /// Starts the process that runs a service again with a failpoint armed: `turn.final_append.after=kill`.
    pub fn start_again_with_failpoint(&mut self, service: &str, failpoint: &str) {
        let member = self.member_of(service);
        self.launch(member, &[("STEWARD_FAILPOINTS".to_owned(), failpoint.to_owned())]);
    }

    /// The owner of the home team.
    pub async fn owner(&self) -> Person {
        let token = std::fs::read_to_string(self.data().join("agent/owner.token")).expect("the owner's token is there");
        self.person(token.trim()).await
    }

    /// Whoever a token speaks for.
    pub async fn person(&self, token: &str) -> Person {
        Person::arrive(self.client(token)).await
    }

    /// Clients with a token, each at the endpoint of its service.
    pub fn client(&self, token: &str) -> Client {
        let credentials = Credentials::token(token).expect("a token");
        Client::by_package(|package| {
            let service = match package {
                "learning" => "curator-worker",
                "memory" => "memory-service",
                "recall" => "recall-service",
                "skill" => "skill-registry",
                _ => "agent-orchestrator",
            };
            Wire::connect(&self.endpoint(service))
                .expect("an endpoint")
                .with_credentials(credentials.clone())
        })
    }

    /// Endpoint of the process that runs a service, `http://127.0.0.1:port`.
    pub fn endpoint(&self, service: &str) -> String {
        format!("http://{}", self.ports[self.member_of(service)])
    }

    /// The options by which the command line finds this installation.
    pub fn endpoint_arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--endpoint".to_owned(), self.endpoint("agent-orchestrator")];
        for (package, service) in [
            ("learning", "curator-worker"),
            ("memory", "memory-service"),
            ("recall", "recall-service"),
            ("skill", "skill-registry"),
        ] {
            arguments.extend(["--service".to_owned(), format!("{package}={}", self.endpoint(service))]);
        }
        arguments
    }

    fn members(&self) -> Vec<&'static str> {
        match self.shape {
            Shape::One => vec![ALL],
            Shape::Split => SERVICES.to_vec(),
        }
    }

    fn member_of(&self, service: &str) -> &'static str {
        match self.shape {
            Shape::One => ALL,
            Shape::Split => SERVICES
                .into_iter()
                .find(|name| *name == service)
                .unwrap_or_else(|| panic!("no service {service}")),
        }
    }

    /// Makes keys, the home team and the tokens, so that five processes can start in any order.
    fn init(&self) {
        let data = self.data();
        let arguments = [
            "init".to_owned(),
            "--data-dir".to_owned(),
            path(&data),
            "--json".to_owned(),
        ];
        // `init` ends by itself; its ready line says where the data lies.
        let process = Process::run_to_end("init", &arguments, &self.folder.join("logs"));
        assert!(process.success(), "init failed with {process}");
    }

    fn launch(&mut self, member: &'static str, more: &[(String, String)]) {
        let listen = self
            .ports
            .get(member)
            .cloned()
            .unwrap_or_else(|| "127.0.0.1:0".to_owned());
        let mut arguments = Vec::new();
        if member != ALL {
            arguments.push(member.to_owned());
        }
        arguments.extend([
            "--data-dir".to_owned(),
            path(&self.data()),
            "--listen".to_owned(),
            listen,
        ]);
        arguments.push("--json".to_owned());
        let mut environment = vec![
            ("STEWARD_LOG".to_owned(), "info".to_owned()),
            ("STEWARD_CLOCK_FILE".to_owned(), path(&self.clock_file())),
        ];
        environment.extend_from_slice(&self.options.settings);
        if let Some(model) = &self.options.model {
            environment.push(("STEWARD__AGENT__MODEL__BASE_URL".to_owned(), model.clone()));
            environment.push(("STEWARD__AGENT__MODEL__NAME".to_owned(), "scripted".to_owned()));
        }
        for (service, key) in [
            ("recall-service", "RECALL"),
            ("memory-service", "MEMORY"),
            ("skill-registry", "SKILLS"),
            ("agent-orchestrator", "AGENT"),
        ] {
            if let Some(endpoint) = self.ports.get(service) {
                environment.push((format!("STEWARD__PEERS__{key}"), format!("http://{endpoint}")));
            }
        }
        environment.extend_from_slice(more);
        let process = Process::start(member, &arguments, &environment, &self.folder.join("logs"));
        let endpoint = process.endpoint().trim_start_matches("http://").to_owned();
        self.ports.insert(member, endpoint);
        self.processes.insert(member, process);
    }
}

fn path(path: &Path) -> String {
    path.to_str().expect("paths in tests are UTF-8").to_owned()
}

/// How long a scenario waits for something that takes several services.
pub const PATIENCE: Duration = Duration::from_mins(1);
