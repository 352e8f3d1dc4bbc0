//! Shell scripts.

use super::table;

#[test]
fn tls_verification_off() {
    table(
        "install.sh",
        "tls-verification-off",
        &[
            "curl -k https://example.com/install.sh -o install.sh\n",
            "curl -fsSLk https://example.com/a.tgz | tar xz\n",
            "curl --insecure \"https://example.com/$file\"\n",
            "wget --no-check-certificate https://example.com/a.tgz\n",
        ],
        &[
            "# curl -k https://example.com\n",
            "echo 'curl -k https://example.com'\n",
            "curl -fsSL https://example.com/a.tgz\n",
            "curl -k https://localhost:8443/health\n",
            "curl -k \"https://$HOST/health\"\n",
            "curl -K config https://example.com\n",
            "curl -o-k https://example.com\n",
            "curl http://example.com -k\n",
            "if [ \"$INSECURE\" = 1 ]; then curl -k https://example.com; fi\n",
            "cat <<EOF\ncurl -k https://example.com\nEOF\n",
            "tar -k https://example.com\n# curl\n",
        ],
    );
}

#[test]
fn ssh_host_key_unchecked() {
    table(
        "deploy.bash",
        "ssh-host-key-unchecked",
        &[
            "ssh -o StrictHostKeyChecking=no deploy@example.com ls\n",
            "scp -oStrictHostKeyChecking=no file deploy@example.com:\n",
            "ssh -o \"StrictHostKeyChecking=no\" \"$TARGET\" true\n",
        ],
        &[
            "# ssh -o StrictHostKeyChecking=no deploy@example.com\n",
            "echo 'ssh -o StrictHostKeyChecking=no'\n",
            "ssh -o StrictHostKeyChecking=yes deploy@example.com\n",
            "ssh -o StrictHostKeyChecking=accept-new deploy@example.com\n",
            "ssh -o StrictHostKeyChecking=no root@localhost ls\n",
            "grep StrictHostKeyChecking=no ~/.ssh/config\n",
        ],
    );
}

#[test]
fn shell_from_data() {
    table(
        "hook.sh",
        "shell-from-data",
        &[
            "eval \"$SSH_ORIGINAL_COMMAND\"\n",
            "eval $QUERY_STRING\n",
            "bash -c \"git checkout $GITHUB_HEAD_REF\"\n",
            "sh -c \"echo ${PR_TITLE}\"\n",
        ],
        &[
            "# eval \"$QUERY_STRING\"\n",
            "echo 'eval $QUERY_STRING'\n",
            "eval \"$(ssh-agent -s)\"\n",
            "eval \"$command\"\n",
            "bash -c 'echo \"$1\"' _ \"$GITHUB_HEAD_REF\"\n",
            "eval 'echo $QUERY_STRING'\n",
            "git checkout \"$GITHUB_HEAD_REF\"\n",
            "bash run.sh \"$QUERY_STRING\"\n",
        ],
    );
    // Without an extension the first line says what the file is.
    table(
        "bin/hook",
        "shell-from-data",
        &["#!/bin/sh\neval \"$SSH_ORIGINAL_COMMAND\"\n"],
        &["#!/usr/bin/perl\neval \"$SSH_ORIGINAL_COMMAND\"\n"],
    );
}
