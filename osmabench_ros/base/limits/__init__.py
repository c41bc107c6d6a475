"""Reading of files from outside within limits of memory, time and reach."""
