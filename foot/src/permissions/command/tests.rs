use super::*;
use proptest::prelude::*;

fn no_links(_: &str) -> Option<String> {
    None
}

fn argv(line: &str) -> Reading {
    argv_of(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
}

fn argv_of(words: &[String]) -> Reading {
    Reading::of_argv(words, Vec::new(), None, &no_links)
}

fn script(text: &str) -> Reading {
    Reading::of_script(text, &[], None, &no_links)
}

fn told(part: &Part) -> String {
    let words: Vec<&str> = part.words.iter().map(|word| word.text().unwrap_or("…")).collect();
    words.join(" ")
}

/// What is there for sure, in order. `…` stands for what is open.
fn sure(reading: &Reading) -> Vec<String> {
    reading.parts.iter().filter(|part| part.sure).map(told).collect()
}

/// Whether a command is found, be it as a guess.
fn finds(reading: &Reading, words: &str) -> bool {
    reading.parts.iter().any(|part| told(part).starts_with(words))
}

#[test]
fn wrappers_are_looked_through() {
    for (line, inner) in [
        ("env rm x", "rm x"),
        ("env X=1 Y=2 rm x", "rm x"),
        ("env -i -u A --chdir=/ X=1 rm x", "rm x"),
        ("env - rm x", "rm x"),
        ("env -S rm x", "rm x"),
        ("/usr/bin/env rm x", "rm x"),
        ("sudo -u root -E rm x", "rm x"),
        ("sudo -uroot -- rm x", "rm x"),
        ("sudo --user root A=1 rm x", "rm x"),
        ("doas -u a rm x", "rm x"),
        ("nice -n 10 rm x", "rm x"),
        ("nice -10 rm x", "rm x"),
        ("nohup rm x", "rm x"),
        ("setsid -w rm x", "rm x"),
        ("timeout -k 5 -s KILL 10 rm x", "rm x"),
        ("timeout --signal=TERM 10 rm x", "rm x"),
        ("stdbuf -oL -e 0 rm x", "rm x"),
        ("ionice -c2 -n 7 rm x", "rm x"),
        ("time -p rm x", "rm x"),
        ("command rm x", "rm x"),
        ("chroot --userspec=a /x rm x", "rm x"),
        ("busybox rm x", "rm x"),
        ("env nice nohup timeout 5 rm x", "rm x"),
    ] {
        let reading = argv(line);
        assert_eq!(sure(&reading).last().map(String::as_str), Some(inner), "{line}");
        assert_eq!(sure(&reading).first().map(String::as_str), Some(line), "the wrapper is a part, too");
        assert!(!reading.unclear, "{line}");
    }
}

#[test]
fn names_that_a_wrapper_sets_belong_to_what_it_starts() {
    let reading = argv("env LD_PRELOAD=x rm y");
    let envs: Vec<&[String]> = reading.parts.iter().map(|part| part.env.as_slice()).collect();
    assert_eq!(envs, [&[][..], &["LD_PRELOAD".to_owned()][..]]);
    let reading = script("A=1 B=2 rm y");
    assert_eq!(reading.parts[0].env, ["A", "B"]);
}

#[test]
fn what_comes_from_elsewhere_is_open() {
    assert_eq!(sure(&argv("xargs -0 -n 1 git push")), ["xargs -0 -n 1 git push", "git push …"]);
    assert_eq!(sure(&argv("xargs -I{} git {} x")).last().unwrap(), "git … … …");
    assert_eq!(sure(&argv("find . -name x -exec rm -f {} ; -exec echo {} +"))[1..], ["rm -f …", "echo …"]);
    assert_eq!(sure(&argv("find . -delete"))[1..], ["rm …"]);
    assert_eq!(sure(&argv("find . -exec a + b {} ;"))[1..], ["a + b …"], "a `+` ends nothing but behind {{}}");
    let hidden = argv_of(&["find", ".", "-exec", "sh", "-c", "rm {}", ";"].map(str::to_owned));
    assert!(hidden.unclear && finds(&hidden, "rm"));
}

#[test]
fn options_that_are_not_understood_make_it_unclear_and_hide_nothing() {
    for line in [
        "env --weird rm x",
        "env -X rm x",
        "sudo --unknown v rm x",
        "timeout --what 5 rm x",
        "xargs -i rm x",
        "strace -f -o log rm x",
        "flock /tmp/l rm x",
        "systemd-run --user rm x",
        "strace -f env sudo --odd rm x",
        "watch --exec=rm x",
    ] {
        let reading = argv(line);
        assert!(reading.unclear && finds(&reading, "rm x"), "{line}: {:?}", reading.parts);
    }
    let reading = argv_of(&["su", "-c", "cd /; rm x", "root"].map(str::to_owned));
    assert!(reading.unclear && reading.script && finds(&reading, "rm x"));
}

#[test]
fn scripts_are_read_command_by_command() {
    for (text, expected) in [
        ("git status; rm -rf x", &["git status", "rm -rf x"][..]),
        ("a && b || c | d & e\nf", &["a", "b", "c", "d", "e", "f"]),
        ("a |& b", &["a", "b"]),
        ("echo $(rm x) `rm y`", &["rm x", "rm y", "echo … …"]),
        ("echo \"a $(rm x) b\"", &["rm x", "echo …"]),
        ("echo $(echo $(rm x))", &["rm x", "echo …", "echo …"]),
        ("X=$(rm x) ls", &["rm x", "ls"]),
        ("(cd a; rm b)", &["cd a", "rm b"]),
        ("if a; then b; else c; fi", &["a", "b", "c"]),
        ("while ! a; do { b; }; done", &["a", "b"]),
        ("r''m 'a b' \"c d\" e\\ f", &["rm a b c d e f"]),
        ("\\rm x", &["rm x"]),
        ("rm \\\n x", &["rm x"]),
        ("a # b; rm x", &["a"]),
        ("a 2>&1 >/dev/null", &["a"]),
        ("echo a#b '#c' \\#d", &["echo a#b #c #d"]),
        ("echo 'it'\\''s'", &["echo it's"]),
        ("echo \"\\$(rm x)\"", &["echo $(rm x)"]),
        ("", &[]),
    ] {
        let reading = script(text);
        assert_eq!(sure(&reading), expected, "{text}");
        assert!(!reading.unclear && reading.script, "{text}");
        assert!(reading.parts.iter().all(|part| part.scripted));
    }
    assert_eq!(sure(&script("echo $X ${Y} *.c ~/x a{b,c}"))[0], "echo … … … … …");
}

#[test]
fn a_script_within_a_script_within_wrappers_is_read() {
    let words = ["env", "A=1", "bash", "-euo", "pipefail", "-c", "timeout 5 sh -c 'rm x; ls'"];
    let reading = argv_of(&words.map(str::to_owned));
    assert_eq!(sure(&reading).iter().rev().take(2).collect::<Vec<_>>(), ["ls", "rm x"]);
    assert!(!reading.unclear && reading.script);
    for (line, is_script) in
        [("bash x.sh -c y", false), ("sh", true), ("sh -l -i", true), ("sh -s x", true), ("sh -- x", false)]
    {
        assert_eq!(argv(line).script, is_script, "{line}");
    }
    for text in ["eval 'rm x'", "eval rm x", "trap 'rm x' EXIT", "command eval \"rm x\"", "exec rm x"] {
        assert!(sure(&script(text)).contains(&"rm x".to_owned()), "{text}");
    }
}

#[test]
fn what_is_not_understood_is_unclear_and_hides_no_command() {
    for text in [
        "case a in a) rm x;; esac",
        "for f in *; do rm x; done",
        "f() { rm x; }; f",
        "cat <<EOF\n$(rm x)\nEOF",
        "cat <(rm x)",
        "a=(1 2); rm x",
        "$'\\x72m' y; rm x",
        "echo ${X:-$(rm x)}",
        "echo $((1+$(rm x)))",
        "[[ a ]] && rm x",
        "a &> b; rm x",
        "echo 'open; rm x",
        "rm x )",
        "{rm,x}",
        "time { rm x; }",
        "a; function g { rm x; }",
    ] {
        let reading = script(text);
        assert!(reading.unclear, "{text}");
        assert!(finds(&reading, "rm x") || finds(&reading, "rm …"), "{text}: {:?}", reading.parts);
    }
    for text in ["$X y", "`a` y", "~/bin/x", "a > file", "a < file", "PATH=/tmp; git", "eval $X", "a >& file", ">x a"] {
        assert!(script(text).unclear, "{text}");
    }
}

#[test]
fn links_to_wrappers_are_wrappers_and_programs_with_many_names_go_by_theirs() {
    let real = |program: &str| match program {
        "/tmp/x" => Some("env".to_owned()),
        "/bin/sh" => Some("dash".to_owned()),
        "ls" => Some("busybox".to_owned()),
        _ => None,
    };
    let read = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        sure(&Reading::of_argv(&words, Vec::new(), None, &real))
    };
    assert_eq!(read(&["/tmp/x", "rm", "a"])[1..], ["rm a"]);
    assert_eq!(read(&["/bin/sh", "-c", "rm a"])[1..], ["rm a"]);
    assert_eq!(read(&["ls", "rm"]), ["ls rm"]);
}

#[test]
fn nesting_and_length_have_an_end() {
    let mut words = vec!["env".to_owned(); 100];
    words.push("rm".to_owned());
    assert!(argv_of(&words).too_much);
    let long = "a;".repeat(20_000);
    let reading = script(&long);
    assert!(reading.too_much && reading.parts.len() <= MAX_PARTS);
    assert!(script(&"(".repeat(100_000)).unclear);
    assert!(script(&"$(".repeat(30_000)).unclear);
    assert!(script(&"`".repeat(30_000)).unclear || script(&"`".repeat(30_000)).parts.is_empty());
    assert!(script(&format!("rm {}", "x".repeat(70_000))).unclear);
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,4}",
        2 => "-{0,2}[a-zA-Z]{0,3}(=[a-z]{0,2})?",
        1 => "[ -~]{0,8}",
        1 => prop::sample::select(vec!["env", "sudo", "sh", "-c", "--", "xargs", "find", "-exec", ";", "timeout", "5", "A=1"])
            .prop_map(str::to_owned),
    ]
}

/// Ways to start a command from another one, each of which leaves it there for sure.
fn wrapped(inner: &[String], way: usize) -> Vec<String> {
    let front: &[&str] = match way % 12 {
        0 => &["env"],
        1 => &["env", "-i", "A=1"],
        2 => &["sudo", "-u", "root", "--"],
        3 => &["nice", "-n", "5"],
        4 => &["nohup"],
        5 => &["setsid", "-w"],
        6 => &["timeout", "-k", "1", "5"],
        7 => &["stdbuf", "-oL"],
        8 => &["xargs", "-0"],
        9 => &["strace", "-f"],
        10 => &["env", "--no-such-option"],
        _ => {
            let quoted: Vec<String> = inner.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
            return ["bash".to_owned(), "-ec".to_owned(), format!("cd / && {}; ls", quoted.join(" "))].into();
        }
    };
    front.iter().map(|word| (*word).to_owned()).chain(inner.iter().cloned()).collect()
}

proptest! {
    #[test]
    fn no_command_makes_the_reader_panic(words in prop::collection::vec(word(), 0..12)) {
        argv_of(&words);
    }

    #[test]
    fn no_script_makes_the_reader_panic(text in "\\PC{0,60}", soup in "[a-c$`'\"\\\\(){};&|<> \n=#*~!\\[\\]0-9-]{0,40}") {
        script(&text);
        script(&soup);
    }

    #[test]
    fn a_command_stays_in_sight_behind_whatever_is_put_in_front(
        rest in prop::collection::vec("[a-z0-9./=-]{1,6}", 0..4),
        ways in prop::collection::vec(0usize..12, 0..5),
    ) {
        let mut words = vec!["forbidden".to_owned()];
        words.extend(rest);
        for way in ways {
            words = wrapped(&words, way);
            let reading = argv_of(&words);
            let found = reading.parts.iter().any(|part| part.words.first().and_then(Word::text) == Some("forbidden"));
            prop_assert!(found || reading.too_much, "{words:?}: {:?}", reading.parts);
        }
    }

    #[test]
    fn whatever_is_put_around_a_script_leaves_its_commands_in_sight(
        before in "[a-c ;&|\n]{0,12}", after in "[a-c$`'\"\\\\(){};&|<> \n=#*~-]{0,24}",
    ) {
        let text = format!("{before};forbidden x;{after}");
        let reading = script(&text);
        prop_assert!(finds(&reading, "forbidden x") || reading.too_much, "{text}: {:?}", reading.parts);
    }

    #[test]
    fn a_quoted_word_is_itself(words in prop::collection::vec("[ -~]{1,10}", 1..5)) {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
        let text = format!("x {}", quoted.join(" "));
        let reading = script(&text);
        let read: Vec<Option<&str>> = reading.parts[0].words.iter().skip(1).map(Word::text).collect();
        prop_assert_eq!(read, words.iter().map(|word| Some(word.as_str())).collect::<Vec<_>>());
    }
}

#[test]
fn what_a_shell_reads_from_its_input_is_a_script() {
    for line in ["sh", "bash -s a b", "env A=1 dash -", "sh -x --"] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let reading = Reading::of_argv(&words, Vec::new(), Some("ls; rm x"), &no_links);
        assert!(sure(&reading).contains(&"rm x".to_owned()) && reading.script && reading.unclear, "{line}");
    }
    let words = ["cat".to_owned()];
    assert!(!sure(&Reading::of_argv(&words, Vec::new(), Some("rm x"), &no_links)).contains(&"rm x".to_owned()));
}
