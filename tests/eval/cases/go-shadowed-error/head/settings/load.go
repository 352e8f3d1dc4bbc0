package settings

import (
	"io"
	"os"
)

func Load(path string) (string, error) {
	var text string
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		data, err := io.ReadAll(file)
		if err == nil {
			text = string(data)
		}
	}
	return text, err
}
