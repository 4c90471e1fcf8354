//! Paths: what is denied stays so however it is written.

use super::*;

#[test]
fn without_rules_the_modes_decide_and_reading_goes_on() {
    let machine = Machine::new();
    for (yaml, verdict) in [("", Verdict::Deny), ("write: ask", Verdict::Ask), ("write: allow", Verdict::Allow)] {
        let judge = machine.judge(yaml);
        assert_eq!(machine.on_path(&judge, Access::Write, "src/a"), verdict, "{yaml}");
        assert_eq!(machine.on_path(&judge, Access::Delete, "src"), verdict, "{yaml}");
        assert_eq!(machine.on_path(&judge, Access::Read, "src"), Verdict::Allow);
    }
}

#[test]
fn deny_goes_before_allow_goes_before_ask_goes_before_the_mode() {
    let machine = Machine::new();
    let judge = machine.judge(
        "write: allow\npermissions:\n  deny: [{paths: [src/a]}]\n  allow: [{paths: [src/a, src/b]}]\n  ask: [{paths: [src]}]\n",
    );
    for (path, verdict) in
        [("src/a", Verdict::Deny), ("src/b", Verdict::Allow), ("src/c", Verdict::Ask), ("x", Verdict::Allow)]
    {
        assert_eq!(machine.on_path(&judge, Access::Write, path), verdict, "{path}");
    }
    let told =
        judge.decide("file_write", &Action::File { access: Access::Write, path: machine.top.join("w/src/c") }, None);
    assert!(told.reason.to_string().starts_with("permissions.ask rule 1 ("), "{}", told.reason);
}

#[test]
fn no_spelling_of_a_path_gets_around_a_rule_or_the_floor() {
    let machine = Machine::new();
    for (target, link) in [
        ("secrets", "w/link"),
        ("../home/.ssh", "w/keys"),
        ("/proc/self/root", "w/rootlink"),
        ("../secrets/deep", "w/src/dangling"),
    ] {
        symlink(target, machine.top.join(link)).unwrap();
    }
    machine.file("w/secrets/deep/key");
    machine.file("home/.ssh/id");
    let judge = machine.judge("write: allow\npermissions: {deny: [{paths: ['secrets/**', 'caf\u{e9}']}]}\n");
    let top = machine.top.display().to_string();
    let through_proc = format!("/proc/self/root{top}/w/secrets/deep/key");
    let through_link = format!("rootlink{top}/w/secrets/deep/key");
    let full = format!("{top}/w/secrets/deep/key");
    for given in [
        "secrets/deep/key",
        "./secrets//deep/./key",
        "src/../secrets/deep/key",
        "link/deep/key",
        "src/dangling/key",
        "../w/secrets/deep/key",
        "SECRETS/deep/key",
        "Secrets/new",
        "cafe\u{301}/x",
        "CAF\u{c9}",
        "keys/id",
        "../home/.ssh/id",
        "/proc/self/cwd",
        &through_proc,
        &through_link,
        &full,
    ] {
        for access in [Access::Read, Access::Write, Access::Delete] {
            assert_eq!(machine.on_path(&judge, access, given), Verdict::Deny, "{access:?} {given}");
        }
    }
    for given in ["src/a", "secrets2", "src/secrets", "cafe"] {
        assert_eq!(machine.on_path(&judge, Access::Write, given), Verdict::Allow, "{given}");
    }
}

#[test]
fn to_allow_one_spelling_allows_no_other() {
    let machine = Machine::new();
    symlink("../home/private", machine.top.join("w/src/out")).unwrap();
    symlink("../secrets", machine.top.join("w/src/in")).unwrap();
    machine.file("w/app/[slug]/page.tsx");
    let judge = machine.judge("permissions:\n  allow: [{paths: ['src/**', 'app/\\[slug\\]/*']}]\n");
    for (given, verdict) in [
        ("src/a", Verdict::Allow),
        ("src/../src/a", Verdict::Allow),
        ("app/[slug]/page.tsx", Verdict::Allow),
        ("app/s/page.tsx", Verdict::Deny),
        ("src/in/a", Verdict::Deny),
        ("src/out/a", Verdict::Deny),
        ("Src/a", Verdict::Deny),
        ("src/../x", Verdict::Deny),
    ] {
        assert_eq!(machine.on_path(&judge, Access::Write, given), verdict, "{given}");
    }
}

/// A hard link cannot be told from what it was made of: it has a path of its own, and rules go by paths.
#[test]
fn a_hard_link_is_a_file_of_its_own() {
    let machine = Machine::new();
    machine.file("w/secrets/key");
    std::fs::hard_link(machine.top.join("w/secrets/key"), machine.top.join("w/src/copy")).unwrap();
    let judge = machine.judge("permissions: {deny: [{paths: [secrets]}]}");
    assert_eq!(machine.on_path(&judge, Access::Read, "src/copy"), Verdict::Allow);
}

#[test]
fn rules_are_about_the_tools_they_name() {
    let machine = Machine::new();
    let judge = machine.judge(
        "write: allow\npermissions:\n  deny: [{tools: ['file_d*'], paths: ['**']}, {tools: [mcp__*]}]\n  ask: [{tools: [file_edit]}]\n",
    );
    let say = |tool: &str| {
        let action = Action::File { access: Access::Write, path: machine.top.join("w/x") };
        judge.decide(tool, &action, None).verdict
    };
    assert_eq!(["file_delete", "file_write", "file_edit"].map(say), [Verdict::Deny, Verdict::Allow, Verdict::Ask]);
    let nothing = |tool: &str| judge.decide(tool, &Action::Nothing, None).verdict;
    assert_eq!(["mcp__x", "exec_status"].map(nothing), [Verdict::Deny, Verdict::Allow]);
}

#[test]
fn walks_and_listings_do_not_see_what_a_rule_keeps() {
    let machine = Machine::new();
    let judge = machine.judge(
        "permissions:\n  deny: [{paths: [secrets]}, {tools: [file_grep], paths: [src/hidden]}]\n  \
         allow: [{paths: [docs/open]}]\n  ask: [{paths: [docs]}]\n",
    );
    machine.file("w/docs/a");
    let at = |path: &str| machine.top.join("w").join(path);
    let gate = |tool: &str, base: &str| judge.policy.gate_for(tool).granting(&at(base));
    let list = gate("file_list", "");
    for (path, seen) in [
        ("src", true),
        ("secrets", false),
        ("secrets/a", false),
        ("docs", false),
        ("docs/a", false),
        ("docs/open", true),
        ("src/hidden", true),
    ] {
        assert_eq!(list.serves(&at(path)), seen, "{path}");
    }
    assert!(!gate("file_grep", "").serves(&at("src/hidden")));
    // Whoever was asked about a folder was asked about what is in it, and about nothing that is denied.
    assert!(gate("file_grep", "docs").serves(&at("docs/a")));
    assert!(!gate("file_grep", "docs").serves(&at("secrets/a")));

    // Whether something is there is not told: the rules answer, as they do for what is.
    let read = judge.policy.gate_for("file_read");
    for path in ["secrets/none", "docs/none"] {
        assert_eq!(read.resolve(path).unwrap(), at(path));
    }
    assert_eq!(read.resolve("src/none").unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn tools_are_offered_if_some_call_of_them_could_go_on() {
    let machine = Machine::new();
    for (yaml, write, exec) in [
        ("", false, false),
        ("write: ask", true, false),
        ("exec: allow", false, true),
        ("permissions: {allow: [{paths: [src/**]}]}", true, false),
        ("permissions: {allow: [{tools: [file_read], paths: [src/**]}]}", false, false),
        ("permissions: {ask: [{argv: [git, '**']}]}", false, true),
        ("permissions: {ask: [{shell: true}]}", false, true),
        ("permissions: {allow: [{tools: ['*']}]}", true, true),
        ("permissions: {deny: [{tools: ['*']}]}", false, false),
    ] {
        let permissions = Permissions::with(machine.judge(yaml), Arc::new(Desk::closed()));
        assert_eq!((permissions.offers_write(), permissions.offers_exec()), (write, exec), "{yaml}");
    }
}

/// What lies in a root is never read as settings, whatever it is called.
#[test]
fn a_hostile_working_directory_widens_nothing() {
    let machine = Machine::new();
    let hostile = "write: allow\nexec: allow\npermissions: {allow: [{tools: ['*']}, {shell: true}]}\n";
    for path in ["foot.yaml", ".footbridge/foot.yaml", "permissions.yaml", ".config/footbridge/foot.yaml", ".env"] {
        let path = machine.top.join("w").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, hostile).unwrap();
    }
    let home = machine.top.join("home").display().to_string();
    let environment = crate::config::Environment::of(&[("HOME", &home), ("FOOTBRIDGE_TOKEN", "t")]);
    let flags = crate::config::Settings::default();
    let served = crate::config::served(flags, None, &environment, &machine.top.join("w")).unwrap();
    assert_eq!((served.permitted.defaults, served.permitted.rules.count()), (Defaults::default(), 0));
    machine.program("w/git");
    let judge = machine.judge("permissions: {allow: [{argv: [git, '**']}]}");
    assert_eq!(run(&judge, &machine.argv(&["./git", "status"])), Verdict::Deny);
}
