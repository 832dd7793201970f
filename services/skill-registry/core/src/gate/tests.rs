use super::*;

const ORIGINS: [Origin; 8] = [
    Origin::Foreground,
    Origin::Review,
    Origin::Curation,
    Origin::Schedule,
    Origin::Delegate,
    Origin::Hub,
    Origin::Builtin,
    Origin::Import,
];

fn state(provenance: Provenance) -> GateState {
    GateState {
        provenance: Some(provenance),
        pinned: false,
        protected: false,
        referenced: false,
        prunable: false,
    }
}

/// A letter per action in the order of [`Action::ALL`]: `+` allowed, `a` archived instead, `-` refused. One row per
/// state, in the order of the test.
fn expected(origin: Origin) -> [&'static str; 17] {
    match origin {
        Origin::Foreground | Origin::Import => [
            "+++++++++++",
            "+++++--+++-",
            "+++++++++++",
            "+++++--+++-",
            "+++++-++++-",
            "-----+++++-",
            "-------+++-",
            "-----------",
            "+++++++++++",
            "-----------",
            "+++++++++++",
            "+++++++++++",
            "-----+++++-",
            "-------+++-",
            "-------+++-",
            "-----+++++-",
            "+++++++++++",
        ],
        Origin::Review | Origin::Schedule | Origin::Delegate => agents_only(),
        Origin::Curation => {
            let mut rows = agents_only();
            rows[12] = "-----a++---";
            rows[14] = "-------+---";
            rows[15] = "-------+---";
            rows
        }
        Origin::Hub => {
            let mut rows = ["-----------"; 17];
            rows[4] = "+++++a++---";
            rows
        }
        Origin::Builtin => {
            let mut rows = ["-----------"; 17];
            rows[5] = "+++++a++---";
            rows[6] = "+++++--+---";
            rows[12] = "+++++a++---";
            rows[14] = "+++++--+---";
            rows[15] = "+++++a++---";
            rows
        }
    }
}

/// What reviews, schedules and delegates may: agent-created skills, and no removal of one that a schedule names.
fn agents_only() -> [&'static str; 17] {
    let mut rows = ["-----------"; 17];
    rows[0] = "+++++a++---";
    rows[10] = "+++++--+---";
    rows
}

/// `S-14`: every cell, so that a change of the rules is seen as a change of the table and of nothing else. One row per origin
/// and state.
#[test]
fn the_table_is_what_the_rules_say() {
    let open = |name| GateState {
        provenance: Provenance::parse(name),
        ..state(Provenance::UserMade)
    };
    let referenced = |state| GateState {
        referenced: true,
        ..state
    };
    let prunable = |state| GateState {
        prunable: true,
        ..state
    };
    let pinned = |name| GateState {
        pinned: true,
        ..open(name)
    };
    let rows = [
        ("agent", open("agent_created")),
        ("agent pinned", pinned("agent_created")),
        ("user", open("user_made")),
        ("user pinned", pinned("user_made")),
        ("hub", open("hub")),
        ("builtin", open("builtin")),
        (
            "protected",
            GateState {
                protected: true,
                ..open("builtin")
            },
        ),
        ("external", open("external")),
        ("imported", open("imported")),
        ("unreadable", open("no such provenance")),
        ("agent referenced", referenced(open("agent_created"))),
        ("user referenced", referenced(open("user_made"))),
        ("prunable builtin", prunable(open("builtin"))),
        ("prunable builtin pinned", prunable(pinned("builtin"))),
        (
            "prunable protected",
            prunable(GateState {
                protected: true,
                ..open("builtin")
            }),
        ),
        ("prunable builtin referenced", prunable(referenced(open("builtin")))),
        ("prunable user", prunable(open("user_made"))),
    ];
    let letters = |origin: Origin, state: GateState| {
        Action::ALL
            .into_iter()
            .map(|action| match rule(origin, state, action) {
                Ruling::Allow => '+',
                Ruling::AsArchive => 'a',
                Ruling::Refuse(_) => '-',
            })
            .collect::<String>()
    };
    for origin in ORIGINS {
        for ((label, state), wanted) in rows.into_iter().zip(expected(origin)) {
            assert_eq!(letters(origin, state), wanted, "{origin} on {label}");
        }
    }
}

#[test]
fn a_review_is_refused_on_everything_that_is_not_its_own() {
    let cases = [
        (state(Provenance::Builtin), Gate::Builtin),
        (state(Provenance::Hub), Gate::Hub),
        (
            GateState {
                pinned: true,
                ..state(Provenance::AgentCreated)
            },
            Gate::Pinned,
        ),
        (state(Provenance::External), Gate::External),
        (state(Provenance::UserMade), Gate::UserMade),
    ];
    let actions = [
        Action::Edit,
        Action::Patch,
        Action::WriteFile,
        Action::RemoveFile,
        Action::Delete,
    ];
    let mut refusals = 0;
    for origin in [Origin::Review, Origin::Curation] {
        for (state, gate) in cases {
            for action in actions {
                assert_eq!(rule(origin, state, action), Ruling::Refuse(gate), "{origin} {action:?}");
                refusals += 1;
            }
        }
    }
    assert_eq!(refusals, 2 * 25);
    assert_eq!(
        rule(Origin::Foreground, state(Provenance::UserMade), Action::Patch),
        Ruling::Allow
    );
    assert_eq!(
        rule(Origin::Foreground, state(Provenance::UserMade), Action::Edit),
        Ruling::Allow
    );
}

#[test]
fn an_unreadable_record_is_refused_to_everyone() {
    let unreadable = GateState {
        provenance: None,
        ..state(Provenance::UserMade)
    };
    for origin in ORIGINS {
        for action in Action::ALL {
            assert_eq!(rule(origin, unreadable, action), Ruling::Refuse(Gate::Unreadable));
        }
    }
}

/// `S-15`.
#[test]
fn only_reviews_and_curations_make_agent_created_skills() {
    for origin in ORIGINS {
        let is_learner = matches!(origin, Origin::Review | Origin::Curation);
        assert_eq!(
            Provenance::of_creation(origin) == Provenance::AgentCreated,
            is_learner,
            "{origin}"
        );
    }
}

#[test]
fn a_curation_says_where_the_content_went() {
    assert_eq!(
        absorption(Origin::Curation, Absorption::NotGiven),
        Err(Gate::AbsorbedInto)
    );
    assert_eq!(absorption(Origin::Curation, Absorption::Pruned), Ok(()));
    assert_eq!(absorption(Origin::Curation, Absorption::Into), Ok(()));
    assert_eq!(
        absorption(Origin::Curation, Absorption::IntoNothing),
        Err(Gate::AbsorbedInto)
    );
    assert_eq!(absorption(Origin::Review, Absorption::NotGiven), Ok(()));
    assert_eq!(
        absorption(Origin::Foreground, Absorption::IntoNothing),
        Err(Gate::AbsorbedInto)
    );
}

#[test]
fn every_gate_says_what_to_do() {
    let gates = ORIGINS.into_iter().flat_map(|origin| {
        Provenance::ALL.into_iter().flat_map(move |provenance| {
            Action::ALL
                .into_iter()
                .filter_map(move |action| match rule(origin, state(provenance), action) {
                    Ruling::Refuse(gate) => Some(gate),
                    Ruling::Allow | Ruling::AsArchive => None,
                })
        })
    });
    for gate in gates {
        assert!(gate.advice().len() > 20 && !gate.as_str().is_empty());
    }
}

/// `L-6`: every origin with everything that it may cite. A letter per citation, in the order of the list: `+` it takes effect,
/// `?` it waits for a person, `-` it is refused.
#[test]
fn on_what_a_write_stands_is_what_the_rules_say() {
    let cited = [
        Cited::Nothing,
        Cited::Spans(None),
        Cited::Spans(Some(Integrity::External)),
        Cited::Spans(Some(Integrity::UnknownTool)),
        Cited::Spans(Some(Integrity::Workspace)),
        Cited::Spans(Some(Integrity::Person)),
        Cited::Spans(Some(Integrity::Operator)),
    ];
    for origin in ORIGINS {
        let expected = match origin {
            Origin::Foreground | Origin::Import | Origin::Hub | Origin::Builtin => "+++++++",
            Origin::Review => "-???+++",
            Origin::Curation | Origin::Schedule | Origin::Delegate => "+???+++",
        };
        let row = cited.map(|cited| match footing(origin, cited) {
            Footing::Stands => '+',
            Footing::Waits => '?',
            Footing::Uncited => '-',
        });
        assert_eq!(row.into_iter().collect::<String>(), expected, "{origin}");
    }
}
