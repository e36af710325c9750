"""Archives of strangers: `reading` asks for what is in one, `unpacking` opens it, in the sandbox alone."""
