// Render a Helm chart's templates as Helm does: text/template with sprig, and include, required and toYaml.
// Arguments: the chart's folder, a JSON file with Values, Chart and Release. Prints one YAML stream.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

func main() {
	folder := os.Args[1]
	content, err := os.ReadFile(os.Args[2])
	stop(err)
	var context map[string]interface{}
	stop(json.Unmarshal(content, &context))

	chart := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := chart.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	chart.Funcs(functions)

	files, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	stop(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		stop(err)
		template.Must(chart.New(filepath.Base(file)).Parse(string(text)))
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".yaml") {
			fmt.Println("---")
			stop(chart.ExecuteTemplate(os.Stdout, filepath.Base(file), context))
		}
	}
}

func stop(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
