# Runs BuildKit ("$@"), and leaves the digest and the end of the log in the termination message: kubelet reads 4096 bytes of it.
work=${WORKSPACE:-/workspace}
{ "$@" --metadata-file "$work/metadata.json" 2>&1; echo $? > "$work/code"; } | tee "$work/log"
code=$(cat "$work/code")
digest=
if [ "$code" = 0 ]; then
    digest=$(sed -n 's/.*"containerimage.digest": *"\(sha256:[0-9a-f]\{64\}\)".*/\1/p' "$work/metadata.json" | head -n 1)
fi
{ echo "digest=$digest"; tail -c 3500 "$work/log"; } > "${TERMINATION_LOG:-/dev/termination-log}"
exit "$code"
